#include "thread_devices.h"

#include <array>

#include <tandem/sim/sim.h>

namespace tandem::sim {

namespace {

struct ThreadDevices {
  int8_t device = 0;
  std::array<c10::StreamId, kMaxDevices> streams{};
  DeviceMemory* memory = nullptr;
};

ThreadDevices& this_thread() {
  thread_local ThreadDevices devices;
  return devices;
}

} // namespace

int8_t current_device() {
  return this_thread().device;
}

void set_current_device(int8_t index) noexcept {
  this_thread().device = index;
}

c10::StreamId current_stream(int8_t device_index) {
  return this_thread().streams.at(static_cast<size_t>(device_index));
}

c10::Stream current_stream_of(int8_t device_index) {
  return c10::Stream(
      c10::Stream::UNSAFE,
      c10::Device(c10::kPrivateUse1, device_index),
      current_stream(device_index));
}

void set_current_stream(int8_t device_index, c10::StreamId stream) {
  this_thread().streams.at(static_cast<size_t>(device_index)) = stream;
}

CountOn::CountOn(DeviceMemory& memory) : previous_(this_thread().memory) {
  this_thread().memory = &memory;
}

CountOn::~CountOn() {
  this_thread().memory = previous_;
}

DeviceMemory* counted_memory() {
  return this_thread().memory;
}

} // namespace tandem::sim
