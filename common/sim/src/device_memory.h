#pragma once

#include <mutex>

#include <c10/core/CachingDeviceAllocator.h>

#include <tandem/sim/statistics.h>

namespace tandem::sim {

/// Counts what one device holds and refuses what does not fit.
/// **Threads**: any.
class DeviceMemory {
 public:
  /// `capacity_bytes` 0: unlimited.
  DeviceMemory(int64_t device_index, int64_t capacity_bytes);

  /// **Throws** `c10::OutOfMemoryError`; nothing is counted then.
  void reserve(int64_t num_bytes);
  void release(int64_t num_bytes) noexcept;

  int64_t device_index() const {
    return device_index_;
  }
  MemoryStatistics statistics() const;
  /// The same, in the form that LibTorch reads.
  c10::CachingDeviceAllocator::DeviceStats device_stats() const;
  void reset_peak();
  void reset_accumulated();

 private:
  bool fits(int64_t num_bytes) const;
  [[noreturn]] void throw_out_of_memory(int64_t num_bytes) const;

  const int64_t device_index_;
  const int64_t capacity_bytes_;
  mutable std::mutex mutex_;
  c10::CachingAllocator::Stat bytes_;
  c10::CachingAllocator::Stat blocks_;
  int64_t num_out_of_memory_ = 0;
};

} // namespace tandem::sim
