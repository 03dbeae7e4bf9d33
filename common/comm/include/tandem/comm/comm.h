#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include <torch/arg.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

enum class DeviceChoice {
  /// CUDA where this process sees a device and NCCL was built in, else the CPU.
  kAuto,
  kCPU,
  kCUDA,
};

struct ProcessGroupOptions {
  /// Limit of each collective.
  TORCH_ARG(std::chrono::milliseconds, timeout) = kDefaultTimeout;
  /// Limit for all ranks to meet at start-up.
  TORCH_ARG(std::chrono::milliseconds, startup_timeout) =
      kDefaultStartupTimeout;
  /// Where models live. The CPU's backend is always there besides.
  TORCH_ARG(DeviceChoice, device) = DeviceChoice::kAuto;
};

/// Meets the other ranks as RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE,
/// MASTER_ADDR and MASTER_PORT say (torchrun's variables, its agent store
/// included) and makes the group the process's default.
/// **Collective**.
/// **Throws** `ConfigError` naming the variable, its value and the rule, or if
/// there is a default group already; `TimeoutError` naming the ranks that did
/// not come.
std::shared_ptr<ProcessGroup> init_process_group(
    const ProcessGroupOptions& options = {});

/// Drops the default group; wrappers keep theirs. Without one: does nothing.
void destroy_process_group();

bool is_initialized();

/// The thread's group (`ScopedGroup`), else the process's.
/// **Throws** `ConfigError` if there is neither.
std::shared_ptr<ProcessGroup> default_group();

/// Makes `group` the current thread's default until destroyed; nests. Lets
/// threads of one process be ranks.
class [[nodiscard]] ScopedGroup {
 public:
  explicit ScopedGroup(std::shared_ptr<ProcessGroup> group);
  ~ScopedGroup();
  ScopedGroup(const ScopedGroup&) = delete;
  ScopedGroup& operator=(const ScopedGroup&) = delete;

 private:
  std::shared_ptr<ProcessGroup> previous_;
};

/// Of the default group; a process without one is a world of one.
int64_t rank();
int64_t world_size();
/// True on rank 0.
bool is_main();

/// On the default group. **Collective**. **Throws** `ConfigError` without one.
void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);
void broadcast(at::Tensor& tensor, int64_t root = 0);
void barrier();

} // namespace tandem::comm
