#include "placement/placement.h"

#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/cuda.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/launcher.h>
#include <tandem/comm/rendezvous_env.h>
#include <tandem/core/errors.h>

#include "processes/rerun.h"

namespace tandem::bench {

namespace {

constexpr int64_t kDefaultCpuWorkers = 2;

int64_t num_cuda_devices() {
  return static_cast<int64_t>(torch::cuda::device_count());
}

at::DeviceType resolve_device(const std::string& name) {
  if (name == "cpu" || (name == "auto" && num_cuda_devices() == 0)) {
    return at::kCPU;
  }
  if (num_cuda_devices() == 0) {
    throw ConfigError("--device: expected a CUDA device for 'cuda', got none");
  }
  return at::kCUDA;
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
  if (placement.device == at::kCUDA && workers > num_cuda_devices()) {
    throw ConfigError(fmt::format(
        "--workers: expected at most {}, one per CUDA device, got {}",
        num_cuda_devices(),
        workers));
  }
}

// One variable is enough: what is missing is then told by init_process_group.
bool was_launched() {
  return comm::process_env("RANK") || comm::process_env("WORLD_SIZE");
}

void join_process_group(at::DeviceType device) {
  comm::init_process_group(comm::ProcessGroupOptions().device(
      device == at::kCUDA ? comm::DeviceChoice::kCUDA
                          : comm::DeviceChoice::kCPU));
}

} // namespace

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
  if (request.strategy == Strategy::kDDP) {
    if (was_launched()) {
      return placement;
    }
    placement.is_launcher = true;
  }
  if (!placement.workers) {
    placement.workers = request.strategy == Strategy::kSingle ? 1
        : placement.device == at::kCUDA ? num_cuda_devices()
                                        : kDefaultCpuWorkers;
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
      device_(placement.device) {
  at::set_num_threads(static_cast<int>(placement.threads));
  if (strategy_ != Strategy::kDDP) {
    if (device_.is_cuda()) {
      device_ = at::Device(at::kCUDA, 0);
    }
    return;
  }
  join_process_group(placement.device);
  const auto group = comm::default_group();
  device_ = group->device();
  backend_ = group->backend_name(device_.type());
  workers_ = group->size();
  is_main_ = group->rank() == 0;
  if (workers_ != placement.workers.value_or(workers_)) {
    throw ConfigError(fmt::format(
        "--workers: expected {}, the world size this process was launched "
        "with, got {}",
        workers_,
        *placement.workers));
  }
}

WorkerScope::~WorkerScope() {
  if (strategy_ == Strategy::kDDP) {
    comm::destroy_process_group();
  }
}

WrapOptions WorkerScope::wrap_options() const {
  std::vector<at::Device> devices;
  for (int64_t index = 0; index < workers_; ++index) {
    devices.emplace_back(
        device_.type(),
        device_.is_cuda() ? static_cast<at::DeviceIndex>(index) : -1);
  }
  return WrapOptions(strategy_).dp(DataParallelOptions().devices(devices));
}

} // namespace tandem::bench
