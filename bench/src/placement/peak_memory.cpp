#include "placement/peak_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <tandem/train/environment.h>

namespace tandem::bench {

std::vector<int64_t> peak_bytes(const WorkerScope& worker) {
  if (worker.device().is_cpu()) {
    return {train::peak_resident_bytes()};
  }
  constexpr auto all =
      static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  std::vector<int64_t> peaks;
  for (const auto& device : worker.devices()) {
    const auto statistics =
        c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
    peaks.push_back(statistics.allocated_bytes[all].peak);
  }
  return peaks;
}

void reset_peak_bytes(const WorkerScope& worker) {
  if (worker.device().is_cpu()) {
    train::reset_peak_resident_bytes();
    return;
  }
  for (const auto& device : worker.devices()) {
    c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  }
}

} // namespace tandem::bench
