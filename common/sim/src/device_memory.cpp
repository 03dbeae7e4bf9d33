#include "device_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace tandem::sim {

DeviceMemory::DeviceMemory(int64_t device_index, int64_t capacity_bytes)
    : device_index_(device_index), capacity_bytes_(capacity_bytes) {}

void DeviceMemory::reserve(int64_t num_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!fits(num_bytes)) {
    ++num_out_of_memory_;
    throw_out_of_memory(num_bytes);
  }
  bytes_.increase(static_cast<size_t>(num_bytes));
  blocks_.increase(1);
}

void DeviceMemory::release(int64_t num_bytes) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_.decrease(static_cast<size_t>(num_bytes));
  blocks_.decrease(1);
}

bool DeviceMemory::fits(int64_t num_bytes) const {
  return capacity_bytes_ == 0 || num_bytes <= capacity_bytes_ - bytes_.current;
}

void DeviceMemory::throw_out_of_memory(int64_t num_bytes) const {
  TORCH_CHECK_WITH(
      OutOfMemoryError,
      false,
      fmt::format(
          "sim out of memory: tried to allocate {} bytes on sim:{}, which has "
          "a capacity of {} bytes of which {} are free and {} in use. Use "
          "smaller batches, or raise Options::capacity_bytes",
          num_bytes,
          device_index_,
          capacity_bytes_,
          capacity_bytes_ - bytes_.current,
          bytes_.current));
}

MemoryStatistics DeviceMemory::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return {
      bytes_.current,
      bytes_.peak,
      capacity_bytes_,
      blocks_.allocated,
      num_out_of_memory_};
}

c10::CachingDeviceAllocator::DeviceStats DeviceMemory::device_stats() const {
  constexpr auto all =
      static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const std::lock_guard<std::mutex> lock(mutex_);
  c10::CachingDeviceAllocator::DeviceStats stats;
  for (auto* bytes :
       {&stats.allocated_bytes,
        &stats.reserved_bytes,
        &stats.active_bytes,
        &stats.requested_bytes}) {
    (*bytes)[all] = bytes_;
  }
  for (auto* blocks : {&stats.allocation, &stats.segment, &stats.active}) {
    (*blocks)[all] = blocks_;
  }
  stats.num_ooms = num_out_of_memory_;
  return stats;
}

void DeviceMemory::reset_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_.reset_peak();
  blocks_.reset_peak();
}

void DeviceMemory::reset_accumulated() {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_.reset_accumulated();
  blocks_.reset_accumulated();
  num_out_of_memory_ = 0;
}

} // namespace tandem::sim
