#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include <tandem/sim/statistics.h>

namespace tandem::sim {

/// What kernels and events are timed with.
using Clock = std::chrono::steady_clock;

/// Counts one device's kernels. **Threads**: any.
class KernelCounter {
 public:
  void add(std::chrono::nanoseconds time);
  DeviceCounters read() const;
  void reset();

 private:
  std::atomic<int64_t> operators_{0};
  std::atomic<int64_t> nanoseconds_{0};
};

/// Counts the copies between devices and the host. A place is a device's
/// index, or `kHost`. **Threads**: any.
class CopyMatrix {
 public:
  static constexpr int64_t kHost = -1;

  explicit CopyMatrix(int64_t num_devices);
  void add(int64_t source, int64_t destination, int64_t num_bytes);
  CopyCounters read(int64_t source, int64_t destination) const;
  void reset();

 private:
  struct Cell {
    std::atomic<int64_t> copies{0};
    std::atomic<int64_t> bytes{0};
  };
  size_t index(int64_t source, int64_t destination) const;

  int64_t num_places_;
  std::vector<Cell> cells_;
};

} // namespace tandem::sim
