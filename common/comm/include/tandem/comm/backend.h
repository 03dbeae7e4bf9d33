#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <tandem/comm/process_group.h>

namespace c10d {
class Backend;
} // namespace c10d

namespace tandem::comm {

/// What a backend is made from.
struct BackendRequest {
  c10::intrusive_ptr<c10d::Store> store;
  int64_t rank = 0;
  int64_t size = 1;
  at::Device device{at::kCPU};
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds startup_timeout{};
};

/// The layer beneath `ProcessGroup`: makes the c10d backend that serves one
/// kind of device.
struct BackendFactory {
  std::string name;
  std::function<c10::intrusive_ptr<c10d::Backend>(const BackendRequest&)> make;
};

/// Serves `device_type` with `factory` in every group made from now on; a part
/// that brings a device (the simulated accelerator, a test's faulty transport)
/// calls it once.
void register_backend(at::DeviceType device_type, BackendFactory factory);

/// Connects one rank of a group over `store` and returns it; what
/// `init_process_group` and ranks as threads share.
/// **Collective**.
std::shared_ptr<ProcessGroup> connect_group(const BackendRequest& request);

} // namespace tandem::comm
