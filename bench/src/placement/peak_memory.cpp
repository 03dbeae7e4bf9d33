#include "placement/peak_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <tandem/core/allocated_memory.h>
#include <tandem/train/environment.h>

namespace tandem::bench {

std::vector<int64_t> peak_bytes(const WorkerScope& worker) {
  if (worker.device().is_cpu()) {
    return {train::peak_resident_bytes()};
  }
  std::vector<int64_t> peaks;
  for (const auto& device : worker.devices()) {
    peaks.push_back(allocated_memory(device).value().peak_bytes);
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
