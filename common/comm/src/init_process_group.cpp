#include <tandem/comm/comm.h>

#include <tandem/comm/backend.h>
#include <tandem/comm/rendezvous_env.h>
#include <tandem/core/errors.h>

#include "builtin_backends.h"
#include "cuda_devices.h"
#include "default_group.h"
#include "tcp_store.h"

namespace tandem::comm {

namespace {

bool chooses_cuda(DeviceChoice choice, int64_t num_devices) {
  switch (choice) {
    case DeviceChoice::kAuto:
      return num_devices > 0 && nccl_backend().has_value();
    case DeviceChoice::kCPU:
      return false;
    case DeviceChoice::kCUDA:
      return true;
  }
  TORCH_INTERNAL_ASSERT(false, "unknown DeviceChoice");
}

[[noreturn]] void throw_initialized() {
  throw ConfigError(
      "process group: expected none yet, got a second init_process_group(). "
      "Call destroy_process_group() first");
}

BackendRequest request_for(
    const RendezvousEnv& env,
    const ProcessGroupOptions& options,
    bool cuda) {
  BackendRequest request;
  request.rank = env.rank;
  request.size = env.world_size;
  request.timeout = options.timeout();
  request.startup_timeout = options.startup_timeout();
  request.one_host = env.one_host;
  if (cuda) {
    request.device =
        at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(env.local_rank));
  }
  return request;
}

} // namespace

std::shared_ptr<ProcessGroup> init_process_group(
    const ProcessGroupOptions& options) {
  if (has_process_default()) {
    throw_initialized();
  }
  const auto num_devices =
      options.device() == DeviceChoice::kCPU ? 0 : num_cuda_devices();
  const bool cuda = chooses_cuda(options.device(), num_devices);
  const auto env = parse_rendezvous_env(
      process_env,
      cuda ? std::make_optional(num_devices) : std::nullopt);
  auto request = request_for(env, options, cuda);
  if (cuda) {
    set_cuda_device(env.local_rank);
  }
  if (env.world_size > 1) {
    request.store = connect_tcp_store(env, options.startup_timeout());
  }
  auto group = connect_group(request);
  if (!set_process_default(group)) {
    throw_initialized();
  }
  return group;
}

} // namespace tandem::comm
