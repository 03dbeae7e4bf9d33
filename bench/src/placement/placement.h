#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include <tandem/sim/sim.h>
#include <tandem/wrap.h>

#include "commands.h"

namespace tandem::bench {

/// Where and how a model is to be trained, as the command line says it.
struct PlacementRequest {
  Strategy strategy = Strategy::kSingle;
  /// "auto", "cpu", "sim" or "cuda"; "auto" is never "sim".
  std::string device = "auto";
  /// Absent: one for single; the ranks there are, if this process was launched
  /// as one; else one per CUDA device, or per simulated device that
  /// TANDEM_SIM_DEVICES asks for, or two.
  std::optional<int64_t> workers;
  /// Intra-op threads of each worker.
  int64_t threads = 1;
  /// Ranks of ddp that never talk: each trains its own rows by itself.
  bool independent = false;
  /// Capacity and links of simulated devices.
  sim::Options sim;
};

/// A request, resolved on this machine.
struct Placement {
  Strategy strategy = Strategy::kSingle;
  at::DeviceType device = at::kCPU;
  /// Ranks of ddp, replicas of dp, 1 for single; absent if a launcher decides.
  std::optional<int64_t> workers;
  int64_t threads = 1;
  bool independent = false;
  sim::Options sim;
  /// This process has ranks to start and is none itself.
  bool is_launcher = false;
};

/// A launcher has started this process as a rank.
bool was_launched();

/// **Throws** `ConfigError` naming the option that cannot be satisfied.
Placement resolve_placement(const PlacementRequest& request);

/// Starts this program again as every rank of `placement`, with these arguments
/// after its name, and returns the ranks' exit code.
int launch_workers(const Placement& placement, const CommandLine& arguments);

/// Makes this process one of the workers: makes simulated devices, sets its
/// threads, joins the process group if there is to be one, and leaves it at the
/// end.
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
  /// Index of this process among those that share a batch, and their number.
  int64_t rank() const {
    return rank_;
  }
  int64_t num_processes() const {
    return strategy_ == Strategy::kDDP ? workers_ : 1;
  }
  /// True in the process that reports: rank 0.
  bool is_main() const {
    return rank_ == 0;
  }
  /// This process trains by itself, though others share its batch.
  bool is_independent() const {
    return independent_;
  }
  /// Where this process's module has to be before it is wrapped.
  at::Device device() const {
    return device_;
  }
  /// All devices that this process trains on, `device()` first.
  std::vector<at::Device> devices() const;
  /// Name of the backend between ranks; absent where there are none.
  const std::optional<std::string>& backend() const {
    return backend_;
  }
  /// The wrapper asked for.
  WrapOptions wrap_options() const;

 private:
  void join_ranks(const Placement& placement);

  Strategy strategy_;
  int64_t workers_;
  int64_t threads_;
  bool independent_;
  int64_t rank_ = 0;
  at::Device device_;
  std::optional<std::string> backend_;
};

} // namespace tandem::bench
