#include "stream_clocks.h"

#include <fmt/format.h>

namespace tandem::sim {

size_t StreamClocks::index_of(const c10::Stream& stream) {
  const auto [found, is_new] = indices_.emplace(stream, states_.size());
  if (is_new) {
    states_.push_back({stream, {}});
  }
  return found->second;
}

std::string StreamClocks::name_of(size_t stream) const {
  const auto& known = states_.at(stream).stream;
  return fmt::format("{} stream {}", known.device().str(), known.id());
}

const VectorClock& StreamClocks::next_work(size_t stream) {
  auto& clock = states_.at(stream).clock;
  clock.merge(host_);
  return clock;
}

int64_t StreamClocks::add_work(size_t stream) {
  auto& state = states_.at(stream);
  state.clock.set(stream, ++state.num_works);
  return state.num_works;
}

void StreamClocks::wait(size_t stream, const VectorClock& clock) {
  states_.at(stream).clock.merge(clock);
}

void StreamClocks::host_wait(const VectorClock& clock) {
  host_.merge(clock);
}

void StreamClocks::host_wait_for_device(c10::DeviceIndex device) {
  for (const auto& state : states_) {
    if (state.stream.device_index() == device) {
      host_.merge(state.clock);
    }
  }
}

} // namespace tandem::sim
