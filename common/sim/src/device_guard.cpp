#include "device_guard.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "allocators.h"
#include "runtime.h"
#include "thread_devices.h"
#include "traffic.h"

namespace tandem::sim {

namespace {

// As on CUDA, a pool's streams come again after so many.
constexpr c10::StreamId kNumPooledStreams = 32;

struct Event {
  std::atomic<Clock::time_point> recorded;
  /// In hazard mode; `Hazards` guards it.
  VectorClock clock;
};

Event& event_at(void* event) {
  return *static_cast<Event*>(event);
}

Clock::time_point time_of(void* event) {
  if (event == nullptr) {
    throw ConfigError(
        "event: expected a recorded one, got one never recorded. Record it "
        "before asking for its time");
  }
  return event_at(event).recorded.load();
}

} // namespace

DeviceGuard::DeviceGuard(c10::DeviceIndex num_devices)
    : num_devices_(num_devices), next_stream_(1 + kNumPooledStreams) {}

c10::DeviceType DeviceGuard::type() const {
  return c10::kPrivateUse1;
}

c10::Device DeviceGuard::with_index(c10::Device device) const {
  return device.has_index() ? device : getDevice();
}

void DeviceGuard::check(c10::Device device) const {
  if (device.type() != c10::kPrivateUse1 || device.index() >= num_devices_) {
    throw ConfigError(fmt::format(
        "device: expected sim:0 to sim:{}, got {}",
        num_devices_ - 1,
        device.str()));
  }
}

c10::Device DeviceGuard::exchangeDevice(c10::Device device) const {
  const auto previous = getDevice();
  setDevice(device);
  return previous;
}

c10::Device DeviceGuard::getDevice() const {
  return {c10::kPrivateUse1, current_device()};
}

void DeviceGuard::setDevice(c10::Device device) const {
  check(device);
  uncheckedSetDevice(device);
}

void DeviceGuard::uncheckedSetDevice(c10::Device device) const noexcept {
  if (device.has_index()) {
    set_current_device(device.index());
  }
}

c10::DeviceIndex DeviceGuard::deviceCount() const noexcept {
  was_counted_ = true;
  return num_devices_;
}

void DeviceGuard::synchronizeDevice(c10::DeviceIndex index) const {
  if (auto* const hazards = active_hazards()) {
    hazards->host_wait_for_device(index);
  }
}

c10::Stream DeviceGuard::getStream(c10::Device device) const {
  const auto own = with_index(device);
  check(own);
  return current_stream_of(own.index());
}

c10::Stream DeviceGuard::getDefaultStream(c10::Device device) const {
  return c10::Stream(c10::Stream::DEFAULT, with_index(device));
}

c10::Stream DeviceGuard::getNewStream(c10::Device device, int /*priority*/)
    const {
  return c10::Stream(c10::Stream::UNSAFE, with_index(device), next_stream_++);
}

c10::Stream DeviceGuard::getStreamFromGlobalPool(
    c10::Device device,
    bool /*high_priority*/) const {
  return c10::Stream(
      c10::Stream::UNSAFE,
      with_index(device),
      1 + next_pooled_++ % kNumPooledStreams);
}

c10::Stream DeviceGuard::exchangeStream(c10::Stream stream) const {
  const auto previous = getStream(stream.device());
  set_current_stream(stream.device_index(), stream.id());
  return previous;
}

bool DeviceGuard::queryStream(const c10::Stream& stream) const {
  synchronizeStream(stream);
  return true;
}

void DeviceGuard::synchronizeStream(const c10::Stream& stream) const {
  if (auto* const hazards = active_hazards()) {
    hazards->host_wait_for(stream);
  }
}

void DeviceGuard::recordDataPtrOnStream(
    const c10::DataPtr& pointer,
    const c10::Stream& stream) const {
  device_allocator().recordStream(pointer, stream);
}

void DeviceGuard::record(
    void** event,
    const c10::Stream& stream,
    c10::DeviceIndex /*index*/,
    c10::EventFlag /*flag*/) const {
  if (*event == nullptr) {
    *event = new Event;
  }
  auto& recorded = event_at(*event);
  recorded.recorded = Clock::now();
  if (auto* const hazards = active_hazards()) {
    hazards->record(stream, recorded.clock);
  }
}

void DeviceGuard::block(void* event, const c10::Stream& stream) const {
  auto* const hazards = active_hazards();
  if (hazards != nullptr && event != nullptr) {
    hazards->wait(stream, event_at(event).clock);
  }
}

bool DeviceGuard::queryEvent(void* event) const {
  synchronizeEvent(event);
  return true;
}

void DeviceGuard::synchronizeEvent(void* event) const {
  auto* const hazards = active_hazards();
  if (hazards != nullptr && event != nullptr) {
    hazards->host_wait(event_at(event).clock);
  }
}

void DeviceGuard::destroyEvent(void* event, c10::DeviceIndex /*index*/)
    const noexcept {
  delete static_cast<Event*>(event);
}

double DeviceGuard::elapsedTime(
    void* start,
    void* end,
    c10::DeviceIndex /*index*/) const {
  return std::chrono::duration<double, std::milli>(
             time_of(end) - time_of(start))
      .count();
}

} // namespace tandem::sim
