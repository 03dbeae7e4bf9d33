#include "builtin_backends.h"

#include <cstdlib>

#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace tandem::comm {

namespace {

// Note [NCCL's watchdog]
// By default c10d's watchdog thread ends the process when a collective fails or
// runs out of time. Tandem throws in the caller instead, so the watchdog may
// only abort the communicators ("2", clean up). These choices can be made by
// variables alone; those that the user has set are left as they are.
void set_unless_set(const char* name, const std::string& value) {
  setenv(name, value.c_str(), /*overwrite=*/0);
}

void configure_watchdog(std::chrono::milliseconds startup_timeout) {
  set_unless_set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2");
  set_unless_set("TORCH_NCCL_RETHROW_CUDA_ERRORS", "0");
  // The monitor ends the process when the watchdog itself is stuck.
  set_unless_set("TORCH_NCCL_ENABLE_MONITORING", "0");
  const auto limit_s = (startup_timeout.count() + 999) / 1000;
  set_unless_set("TORCH_NCCL_NONBLOCKING_TIMEOUT", std::to_string(limit_s));
}

c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendRequest& request) {
  configure_watchdog(request.startup_timeout);
  auto options = c10d::ProcessGroupNCCL::Options::create(
      /*is_high_priority_stream=*/true);
  options->timeout = request.timeout;
  // Only a communicator that does not block can be given up while it is being
  // made, or aborted reliably.
  options->config.blocking = 0;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(
      request.store,
      static_cast<int>(request.rank),
      static_cast<int>(request.size),
      std::move(options));
}

} // namespace

std::optional<BackendFactory> nccl_backend() {
  return BackendFactory{"nccl", make_nccl};
}

} // namespace tandem::comm
