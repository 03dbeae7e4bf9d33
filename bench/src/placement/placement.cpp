#include "placement/placement.h"

#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/launcher.h>
#include <tandem/comm/rendezvous_env.h>
#include <tandem/core/errors.h>

#include "placement/sim_devices.h"
#include "processes/child_program.h"

namespace tandem::bench {

namespace {

constexpr int64_t kDefaultWorkers = 2;

int64_t num_cuda_devices() {
  return static_cast<int64_t>(torch::cuda::device_count());
}

at::DeviceType resolve_device(const std::string& name) {
  if (name == "sim") {
    return at::kPrivateUse1;
  }
  if (name == "cpu" || (name == "auto" && num_cuda_devices() == 0)) {
    return at::kCPU;
  }
  if (num_cuda_devices() == 0) {
    throw ConfigError("--device: expected a CUDA device for 'cuda', got none");
  }
  return at::kCUDA;
}

/// Devices of this type that there are, if that is a limit.
std::optional<int64_t> num_devices(at::DeviceType device) {
  switch (device) {
    case at::kCUDA:
      return num_cuda_devices();
    case at::kPrivateUse1:
      return requested_sim_devices();
    default:
      return std::nullopt;
  }
}

void check_workers(const Placement& placement) {
  const int64_t workers = placement.workers.value();
  if (workers < 1) {
    throw ConfigError(
        fmt::format("--workers: expected at least 1, got {}", workers));
  }
  if (placement.strategy == Strategy::kSingle && workers != 1) {
    throw ConfigError(fmt::format(
        "--workers: expected 1 for the strategy single, got {}",
        workers));
  }
  const auto devices = num_devices(placement.device);
  if (devices && workers > *devices) {
    throw ConfigError(fmt::format(
        "--workers: expected at most {}, one per {} device, got {}",
        *devices,
        placement.device == at::kCUDA ? "CUDA" : "simulated",
        workers));
  }
}

/// The CPU's group serves simulated devices too.
comm::DeviceChoice device_choice(at::DeviceType device) {
  return device == at::kCUDA ? comm::DeviceChoice::kCUDA
                             : comm::DeviceChoice::kCPU;
}

at::Device nth_device(at::DeviceType type, int64_t index) {
  return type == at::kCPU
      ? at::Device(at::kCPU)
      : at::Device(type, static_cast<at::DeviceIndex>(index));
}

} // namespace

// One variable is enough: what is missing is told when ranks meet.
bool was_launched() {
  return comm::process_env("RANK") || comm::process_env("WORLD_SIZE");
}

Placement resolve_placement(const PlacementRequest& request) {
  if (request.threads < 1) {
    throw ConfigError(
        fmt::format("--threads: expected at least 1, got {}", request.threads));
  }
  Placement placement;
  placement.strategy = request.strategy;
  placement.device = resolve_device(request.device);
  placement.workers = request.workers;
  placement.threads = request.threads;
  placement.independent = request.independent;
  placement.sim = request.sim;
  if (request.strategy == Strategy::kDDP) {
    if (was_launched()) {
      return placement;
    }
    placement.is_launcher = true;
  }
  if (!placement.workers) {
    placement.workers = request.strategy == Strategy::kSingle
        ? 1
        : num_devices(placement.device).value_or(kDefaultWorkers);
  }
  check_workers(placement);
  return placement;
}

int launch_workers(const Placement& placement, const CommandLine& arguments) {
  CommandLine command{program_path()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return comm::launch_local(
             comm::LaunchOptions(placement.workers.value(), command)
                 .environment(
                     {{"OMP_NUM_THREADS", std::to_string(placement.threads)}})
                 .name("tandem"))
      .exit_code;
}

WorkerScope::WorkerScope(const Placement& placement)
    : strategy_(placement.strategy),
      workers_(placement.workers.value_or(1)),
      threads_(placement.threads),
      independent_(placement.independent),
      device_(nth_device(placement.device, 0)) {
  at::set_num_threads(static_cast<int>(placement.threads));
  if (strategy_ == Strategy::kDDP) {
    join_ranks(placement);
  } else if (placement.device == at::kPrivateUse1) {
    start_sim_devices(workers_, placement.sim);
  }
}

// As with CUDA, a rank's device is the one with its LOCAL_RANK.
void WorkerScope::join_ranks(const Placement& placement) {
  const auto env = comm::parse_rendezvous_env(
      comm::process_env,
      placement.device == at::kCPU ? std::nullopt
                                   : num_devices(placement.device));
  if (env.world_size != placement.workers.value_or(env.world_size)) {
    throw ConfigError(fmt::format(
        "--workers: expected {}, the world size this process was launched "
        "with, got {}",
        env.world_size,
        *placement.workers));
  }
  workers_ = env.world_size;
  rank_ = env.rank;
  device_ = nth_device(placement.device, env.local_rank);
  if (placement.device == at::kPrivateUse1) {
    start_sim_devices(env.local_world_size, placement.sim);
  }
  if (!independent_) {
    comm::init_process_group(
        comm::ProcessGroupOptions().device(device_choice(placement.device)));
    backend_ = comm::default_group()->backend_name(device_.type());
  }
}

WorkerScope::~WorkerScope() {
  if (strategy_ == Strategy::kDDP && !independent_) {
    comm::destroy_process_group();
  }
}

std::vector<at::Device> WorkerScope::devices() const {
  if (strategy_ != Strategy::kDP) {
    return {device_};
  }
  std::vector<at::Device> devices;
  devices.reserve(static_cast<size_t>(workers_));
  for (int64_t index = 0; index < workers_; ++index) {
    devices.push_back(nth_device(device_.type(), index));
  }
  return devices;
}

WrapOptions WorkerScope::wrap_options() const {
  return WrapOptions(independent_ ? Strategy::kSingle : strategy_)
      .dp(DataParallelOptions().devices(devices()))
      .ddp(DistributedDataParallelOptions().device(device_));
}

} // namespace tandem::bench
