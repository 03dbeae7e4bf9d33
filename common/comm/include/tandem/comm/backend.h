#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/intrusive_ptr.h>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>

namespace c10d {
class Backend;
} // namespace c10d

namespace tandem::comm {

/// What a backend, or a group, is made from.
struct BackendRequest {
  /// Shared by all ranks.
  c10::intrusive_ptr<c10d::Store> store;
  int64_t rank = 0;
  int64_t size = 1;
  /// Where this rank's models live.
  at::Device device{at::kCPU};
  /// Limit of each collective.
  std::chrono::milliseconds timeout = kDefaultTimeout;
  /// Limit for all ranks to meet.
  std::chrono::milliseconds startup_timeout = kDefaultStartupTimeout;
  /// All ranks are known to be on this host: the transport may stay on the
  /// loopback interface. Where it is false, `connect_group` finds out.
  bool one_host = true;
  /// Absent: as the environment says.
  std::optional<Diagnostics> diagnostics = std::nullopt;
};

/// The layer beneath `ProcessGroup`: makes the c10d backend that serves one
/// kind of device. A backend serves all-reduce (SUM, AVG, MIN, MAX, PRODUCT), broadcast
/// and barrier, asynchronously; its `getBackendName` gives `name`; `abort`
/// makes what is in flight fail soon.
struct BackendFactory {
  std::string name;
  std::function<c10::intrusive_ptr<c10d::Backend>(const BackendRequest&)> make;
};

/// Serves `device_type` with `factory` in every group made from now on; a part
/// that brings a device (the simulated accelerator) calls it once.
void register_backend(at::DeviceType device_type, BackendFactory factory);

/// The factory that groups use for `device_type`: registered or built in.
/// **Throws** `ConfigError` if there is none.
BackendFactory backend_factory(at::DeviceType device_type);

/// Registers `factory` until destroyed, then what was registered before (for
/// tests that put a transport between); scopes nest. Groups keep the backends
/// that they were made with.
class [[nodiscard]] ScopedBackend {
 public:
  ScopedBackend(at::DeviceType device_type, BackendFactory factory);
  ~ScopedBackend();
  ScopedBackend(const ScopedBackend&) = delete;
  ScopedBackend& operator=(const ScopedBackend&) = delete;

 private:
  at::DeviceType device_type_;
  std::optional<BackendFactory> previous_;
};

/// Connects one rank of a group over `request.store` and returns it; what
/// `init_process_group` and ranks as threads share. A store serves any number
/// of groups, one after the other. A world of one sends nothing and needs no
/// store.
/// **Collective**.
/// **Throws** `TimeoutError` naming the ranks that did not come within
/// `startup_timeout`, `ConfigError` if there is no backend for the device.
std::shared_ptr<ProcessGroup> connect_group(const BackendRequest& request);

} // namespace tandem::comm
