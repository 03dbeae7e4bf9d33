#pragma once

#include <atomic>

#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace tandem::sim {

/// Current device, streams and events. Work is done when a call returns, so
/// that streams are numbers and events points in time; in hazard mode they keep
/// the order that works on them would have (Note [Hazards]).
class DeviceGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  explicit DeviceGuard(c10::DeviceIndex num_devices);

  /// Whether anybody has asked for the number of devices: the autograd engine
  /// does when it makes its threads.
  bool was_counted() const {
    return was_counted_;
  }

  c10::DeviceType type() const override;
  c10::Device exchangeDevice(c10::Device device) const override;
  c10::Device getDevice() const override;
  void setDevice(c10::Device device) const override;
  void uncheckedSetDevice(c10::Device device) const noexcept override;
  c10::DeviceIndex deviceCount() const noexcept override;
  void synchronizeDevice(c10::DeviceIndex index) const override;

  c10::Stream getStream(c10::Device device) const override;
  c10::Stream getDefaultStream(c10::Device device) const override;
  c10::Stream getNewStream(c10::Device device, int priority) const override;
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool high_priority)
      const override;
  c10::Stream exchangeStream(c10::Stream stream) const override;
  bool queryStream(const c10::Stream& stream) const override;
  void synchronizeStream(const c10::Stream& stream) const override;
  void recordDataPtrOnStream(
      const c10::DataPtr& pointer,
      const c10::Stream& stream) const override;

  void record(
      void** event,
      const c10::Stream& stream,
      c10::DeviceIndex index,
      c10::EventFlag flag) const override;
  void block(void* event, const c10::Stream& stream) const override;
  bool queryEvent(void* event) const override;
  void synchronizeEvent(void* event) const override;
  void destroyEvent(void* event, c10::DeviceIndex index)
      const noexcept override;
  double elapsedTime(void* start, void* end, c10::DeviceIndex index)
      const override;

 private:
  c10::Device with_index(c10::Device device) const;
  void check(c10::Device device) const;

  const c10::DeviceIndex num_devices_;
  mutable std::atomic<bool> was_counted_{false};
  mutable std::atomic<c10::StreamId> next_stream_;
  mutable std::atomic<c10::StreamId> next_pooled_{0};
};

} // namespace tandem::sim
