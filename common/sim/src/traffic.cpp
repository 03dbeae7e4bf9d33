#include "traffic.h"

namespace tandem::sim {

void KernelCounter::add(std::chrono::nanoseconds time) {
  operators_.fetch_add(1, std::memory_order_relaxed);
  nanoseconds_.fetch_add(time.count(), std::memory_order_relaxed);
}

DeviceCounters KernelCounter::read() const {
  return {operators_, std::chrono::nanoseconds(nanoseconds_)};
}

void KernelCounter::reset() {
  operators_ = 0;
  nanoseconds_ = 0;
}

CopyMatrix::CopyMatrix(int64_t num_devices)
    : num_places_(num_devices + 1),
      cells_(static_cast<size_t>(num_places_ * num_places_)) {}

size_t CopyMatrix::index(int64_t source, int64_t destination) const {
  return static_cast<size_t>(
      (source - kHost) * num_places_ + destination - kHost);
}

void CopyMatrix::add(int64_t source, int64_t destination, int64_t num_bytes) {
  auto& cell = cells_[index(source, destination)];
  cell.copies.fetch_add(1, std::memory_order_relaxed);
  cell.bytes.fetch_add(num_bytes, std::memory_order_relaxed);
}

CopyCounters CopyMatrix::read(int64_t source, int64_t destination) const {
  const auto& cell = cells_[index(source, destination)];
  return {cell.copies, cell.bytes};
}

void CopyMatrix::reset() {
  for (auto& cell : cells_) {
    cell.copies = 0;
    cell.bytes = 0;
  }
}

} // namespace tandem::sim
