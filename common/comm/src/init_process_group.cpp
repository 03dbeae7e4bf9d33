#include <tandem/comm/comm.h>

#include <utility>

#include <fmt/format.h>

#include <tandem/comm/backend.h>
#include <tandem/comm/env_reader.h>
#include <tandem/comm/scheduler_env.h>
#include <tandem/core/errors.h>

#include "builtin_backends.h"
#include "cuda_devices.h"
#include "default_group.h"
#include "job_token.h"
#include "rendezvous.h"

namespace tandem::comm {

namespace {

constexpr const char* kGloo = "gloo";
constexpr const char* kNccl = "nccl";

bool chooses_cuda(const ProcessGroupOptions& options, int64_t num_devices) {
  switch (options.device()) {
    case DeviceChoice::kAuto:
      return options.backend() == kNccl ||
          (options.backend() != kGloo && num_devices > 0 &&
           nccl_backend().has_value());
    case DeviceChoice::kCPU:
      return false;
    case DeviceChoice::kCUDA:
      return true;
  }
  TORCH_INTERNAL_ASSERT(false, "unknown DeviceChoice");
}

void check_backend(const std::string& wanted, at::DeviceType device_type) {
  if (wanted.empty()) {
    return;
  }
  const auto name = backend_factory(device_type).name;
  if (wanted != name) {
    throw ConfigError(fmt::format(
        "backend: expected '{}', which serves the {}, got '{}'",
        name,
        c10::DeviceTypeName(device_type),
        wanted));
  }
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
  request.diagnostics = options.diagnostics();
  request.one_host = env.one_host;
  if (cuda) {
    request.device =
        at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(env.local_rank));
  }
  return request;
}

/// `store` is null where the options say where to meet.
std::shared_ptr<ProcessGroup> meet(
    c10::intrusive_ptr<c10d::Store> store,
    const ProcessGroupOptions& options) {
  if (has_process_default()) {
    throw_initialized();
  }
  const auto num_devices =
      options.device() == DeviceChoice::kCPU ? 0 : num_cuda_devices();
  const bool cuda = chooses_cuda(options, num_devices);
  check_backend(options.backend(), cuda ? at::kCUDA : at::kCPU);
  const EnvLookup own_variables = process_env;
  const auto lookup = scheduler_env(own_variables);
  const auto rendezvous = plan_rendezvous(
      options,
      static_cast<bool>(store),
      lookup,
      cuda ? std::make_optional(num_devices) : std::nullopt);
  const auto& env = rendezvous.env;
  auto request = request_for(env, options, cuda);
  const auto token = read_job_token(lookup);
  if (cuda) {
    set_cuda_device(env.local_rank);
  }
  if (env.world_size > 1) {
    const auto limit = options.startup_timeout();
    request.store = store ? std::move(store) : open_store(rendezvous, limit);
    check_same_job(*request.store, token, env.rank, env.world_size, limit);
  }
  auto group = connect_group(request);
  if (!set_process_default(group)) {
    throw_initialized();
  }
  return group;
}

} // namespace

std::shared_ptr<ProcessGroup> init_process_group(
    const ProcessGroupOptions& options) {
  return meet({}, options);
}

std::shared_ptr<ProcessGroup> init_process_group(
    c10::intrusive_ptr<c10d::Store> store,
    int64_t rank,
    int64_t world_size,
    const ProcessGroupOptions& options) {
  if (!store) {
    throw ConfigError("store: expected one, got null");
  }
  auto own = options;
  own.rank(rank).world_size(world_size);
  return meet(std::move(store), own);
}

} // namespace tandem::comm
