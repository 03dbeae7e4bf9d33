#pragma once

#include <cstdint>

#include <c10/core/Stream.h>

namespace tandem::sim {

class DeviceMemory;

/// The current device and streams of this thread.
int8_t current_device();
void set_current_device(int8_t index) noexcept;
c10::StreamId current_stream(int8_t device_index);
/// The same with its device.
c10::Stream current_stream_of(int8_t device_index);
void set_current_stream(int8_t device_index, c10::StreamId stream);

/// While it lives, what the CPU's allocator gives to this thread counts on
/// `memory`, so that kernels' results need not be copied to the device.
/// Nests.
class [[nodiscard]] CountOn {
 public:
  explicit CountOn(DeviceMemory& memory);
  ~CountOn();
  CountOn(const CountOn&) = delete;
  CountOn& operator=(const CountOn&) = delete;

 private:
  DeviceMemory* previous_;
};

/// Null outside any `CountOn`.
DeviceMemory* counted_memory();

} // namespace tandem::sim
