#include "backend_registry.h"

#include <mutex>

#include <tandem/core/errors.h>

#include "builtin_backends.h"

namespace tandem::comm {

namespace {

class BackendRegistry {
 public:
  static BackendRegistry& instance() {
    static BackendRegistry registry;
    return registry;
  }

  std::optional<BackendFactory> exchange(
      at::DeviceType type,
      std::optional<BackendFactory> factory) {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto previous = find(type);
    if (factory) {
      factories_[type] = std::move(*factory);
    } else {
      factories_.erase(type);
    }
    return previous;
  }

  std::map<at::DeviceType, BackendFactory> all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return factories_;
  }

 private:
  std::optional<BackendFactory> find(at::DeviceType type) const {
    const auto found = factories_.find(type);
    return found == factories_.end() ? std::nullopt
                                     : std::make_optional(found->second);
  }

  std::mutex mutex_;
  std::map<at::DeviceType, BackendFactory> factories_;
};

BackendFactory nccl_or_throw() {
  auto nccl = nccl_backend();
  if (!nccl) {
    throw ConfigError(
        "device: expected the CPU, since this build has no NCCL, got CUDA. "
        "Build with TANDEM_NCCL=ON, or choose DeviceChoice::kCPU");
  }
  return *nccl;
}

} // namespace

void register_backend(at::DeviceType device_type, BackendFactory factory) {
  BackendRegistry::instance().exchange(device_type, std::move(factory));
}

ScopedBackend::ScopedBackend(at::DeviceType device_type, BackendFactory factory)
    : device_type_(device_type),
      previous_(BackendRegistry::instance().exchange(
          device_type,
          std::move(factory))) {}

ScopedBackend::~ScopedBackend() {
  BackendRegistry::instance().exchange(device_type_, std::move(previous_));
}

BackendFactory backend_factory(at::DeviceType device_type) {
  const auto registered = BackendRegistry::instance().all();
  const auto found = registered.find(device_type);
  if (found != registered.end()) {
    return found->second;
  }
  if (device_type == at::kCPU) {
    return gloo_backend();
  }
  if (device_type == at::kCUDA) {
    return nccl_or_throw();
  }
  throw ConfigError(
      "device: expected one with a backend, got " +
      c10::DeviceTypeName(device_type, true) + ". Call register_backend first");
}

std::map<at::DeviceType, BackendFactory> backends_for(at::Device device) {
  auto factories = BackendRegistry::instance().all();
  for (const auto type : {at::kCPU, device.type()}) {
    factories.try_emplace(type, backend_factory(type));
  }
  return factories;
}

} // namespace tandem::comm
