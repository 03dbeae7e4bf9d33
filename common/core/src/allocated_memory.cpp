#include <tandem/core/allocated_memory.h>

#include <cstddef>
#include <limits>

#include <c10/core/CachingDeviceAllocator.h>

namespace tandem {

namespace {

/// Null if there are no statistics.
c10::DeviceAllocator* allocator_of(at::Device device) {
  if (device.is_cpu() || device.is_meta()) {
    return nullptr;
  }
  auto* const allocator =
      dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  return allocator != nullptr && allocator->initialized() ? allocator : nullptr;
}

} // namespace

std::optional<AllocatedMemory> allocated_memory(at::Device device) {
  auto* const allocator = allocator_of(device);
  if (allocator == nullptr) {
    return std::nullopt;
  }
  constexpr auto all =
      static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto statistics = allocator->getDeviceStats(device.index());
  const auto& bytes = statistics.allocated_bytes.at(all);
  return AllocatedMemory{bytes.current, bytes.peak};
}

std::optional<int64_t> total_memory_bytes(at::Device device) {
  auto* const allocator = allocator_of(device);
  if (allocator == nullptr) {
    return std::nullopt;
  }
  const auto total = allocator->getMemoryInfo(device.index()).second;
  if (total >= static_cast<size_t>(std::numeric_limits<int64_t>::max())) {
    return std::nullopt;
  }
  return static_cast<int64_t>(total);
}

} // namespace tandem
