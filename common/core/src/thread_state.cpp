#include <tandem/core/thread_state.h>

#include <c10/core/impl/VirtualGuardImpl.h>

namespace tandem {

ThreadState::ThreadState(const std::vector<at::Device>& devices) {
  for (const auto& device : devices) {
    if (!device.is_cpu()) {
      const c10::impl::VirtualGuardImpl guard(device.type());
      streams_.push_back(guard.getStream(device));
    }
  }
}

ThreadStateGuard::ThreadStateGuard(
    const ThreadState& state,
    size_t device_index)
    : local_(state.local_), streams_(state.streams_) {
  if (!state.streams_.empty()) {
    stream_.reset_stream(state.streams_.at(device_index));
  }
}

} // namespace tandem
