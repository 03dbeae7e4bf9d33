#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <torch/arg.h>

#include <tandem/comm/diagnostics.h>
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
  /// Where to meet:
  /// - `env://`: as the variables say;
  /// - `tcp://host:port`: in a store that rank 0 hosts at that address, which
  ///   is one of its host (`[..]` around an IPv6 address);
  /// - `file:///path`: in a file on a file system that all ranks share and
  ///   that knows locks. It serves one group: it must not be there before, and
  ///   goes when all ranks have dropped the group.
  ///
  /// `?rank=..&world_size=..` may follow any of them.
  TORCH_ARG(std::string, init_method) = "env://";
  /// This process's rank and the number of ranks; nothing: as `init_method` or
  /// else RANK and WORLD_SIZE say.
  TORCH_ARG(std::optional<int64_t>, rank);
  TORCH_ARG(std::optional<int64_t>, world_size);
  /// Name of the backend that must serve the models' device: "gloo" chooses the
  /// CPU, "nccl" CUDA, where `device` is left to it. Empty: whichever does.
  TORCH_ARG(std::string, backend);
  /// What the group tells about collectives that go wrong; nothing: as the
  /// environment says.
  TORCH_ARG(std::optional<Diagnostics>, diagnostics);
};

/// Meets the other ranks as the options say, by default as RANK, WORLD_SIZE,
/// LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT do (torchrun's
/// variables, its agent store included; those of SLURM and MPI where they are
/// absent, see `scheduler_env`), and makes the group the process's default.
///
/// A store that rank 0 hosts listens only on the interface of its address, the
/// loopback interface for a loopback address. Ranks whose job differs, by
/// TANDEM_JOB_ID or else TORCHELASTIC_RUN_ID, are turned away. That keeps jobs
/// apart which share an address by mistake; it does not authenticate: whoever
/// can reach the store can join.
///
/// Gloo connects over the network interfaces that TANDEM_SOCKET_IFNAME, or else
/// GLOO_SOCKET_IFNAME, names (several with commas between); else over the
/// loopback interface where all ranks are on one host, and otherwise over that
/// of the host's name. NCCL reads NCCL_SOCKET_IFNAME.
/// **Collective**.
/// **Throws** `ConfigError` naming the variable or option, its value and the
/// rule, or if there is a default group already; `TimeoutError` naming the
/// ranks that did not come.
std::shared_ptr<ProcessGroup> init_process_group(
    const ProcessGroupOptions& options = {});

/// Likewise, meeting in `store`, which all ranks share; `init_method` is not
/// looked at. A `c10d::HashStore` serves a world of one, or ranks that are
/// threads, each with `connect_group` and a `ScopedGroup`.
std::shared_ptr<ProcessGroup> init_process_group(
    c10::intrusive_ptr<c10d::Store> store,
    int64_t rank,
    int64_t world_size,
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
