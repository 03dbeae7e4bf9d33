#include <tandem/core/thread_state.h>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace tandem {

ThreadState::ThreadState(const std::vector<at::Device>& devices) {
  streams_.reserve(devices.size());
  for (const auto& device : devices) {
    if (device.is_cpu()) {
      streams_.emplace_back();
    } else {
      const c10::impl::VirtualGuardImpl guard(device.type());
      streams_.emplace_back(guard.getStream(device));
    }
  }
}

ThreadStateGuard::ThreadStateGuard(
    const ThreadState& state,
    size_t device_index)
    : local_(state.local_) {
  if (const auto& stream = state.streams_.at(device_index)) {
    stream_.reset_stream(*stream);
  }
}

} // namespace tandem
