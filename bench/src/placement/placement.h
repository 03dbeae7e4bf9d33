#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include <tandem/wrap.h>

#include "commands.h"

namespace tandem::bench {

/// Where and how a model is to be trained, as the command line says it.
struct PlacementRequest {
  Strategy strategy = Strategy::kSingle;
  /// "auto", "cpu" or "cuda".
  std::string device = "auto";
  /// Absent: one for single; the ranks there are, if this process was launched
  /// as one; else one per CUDA device, or two on the CPU.
  std::optional<int64_t> workers;
  /// Intra-op threads of each worker.
  int64_t threads = 1;
};

/// A request, resolved on this machine.
struct Placement {
  Strategy strategy = Strategy::kSingle;
  at::DeviceType device = at::kCPU;
  /// Ranks of ddp, replicas of dp, 1 for single; absent if a launcher decides.
  std::optional<int64_t> workers;
  int64_t threads = 1;
  /// This process has ranks to start and is none itself.
  bool is_launcher = false;
};

/// **Throws** `ConfigError` naming the option that cannot be satisfied.
Placement resolve_placement(const PlacementRequest& request);

/// Starts this program again as every rank of `placement`, with these arguments
/// after its name, and returns the ranks' exit code.
int launch_workers(const Placement& placement, const CommandLine& arguments);

/// Makes this process one of the workers: sets its threads, joins the process
/// group if there is to be one, and leaves it at the end.
class [[nodiscard]] WorkerScope {
 public:
  /// **Throws** as `comm::init_process_group`, and `ConfigError` if the world
  /// is not as large as asked for.
  explicit WorkerScope(const Placement& placement);
  ~WorkerScope();
  WorkerScope(const WorkerScope&) = delete;
  WorkerScope& operator=(const WorkerScope&) = delete;

  Strategy strategy() const {
    return strategy_;
  }
  int64_t workers() const {
    return workers_;
  }
  int64_t threads() const {
    return threads_;
  }
  /// True in the process that reports: rank 0.
  bool is_main() const {
    return is_main_;
  }
  /// Where this process's module has to be before it is wrapped.
  at::Device device() const {
    return device_;
  }
  /// Name of the backend between ranks; absent where there are none.
  const std::optional<std::string>& backend() const {
    return backend_;
  }
  /// The wrapper asked for.
  WrapOptions wrap_options() const;

 private:
  Strategy strategy_;
  int64_t workers_;
  int64_t threads_;
  bool is_main_ = true;
  at::Device device_;
  std::optional<std::string> backend_;
};

} // namespace tandem::bench
