#pragma once

#include <chrono>
#include <cstdint>

#include <c10/core/Device.h>

namespace tandem::sim {

/// Memory of one device. Counted are the bytes that were asked for.
struct MemoryStatistics {
  int64_t current_bytes = 0;
  /// The most since `init` or `reset_peak`. Kernels' temporaries count, so that
  /// it may vary a little with the timing of the autograd threads.
  int64_t peak_bytes = 0;
  /// 0: unlimited.
  int64_t capacity_bytes = 0;
  /// Blocks since `init`.
  int64_t num_allocations = 0;
  /// Requests refused for lack of memory since `init`.
  int64_t num_out_of_memory = 0;
};

/// Work of one device since `init` or `reset_counters`.
struct DeviceCounters {
  /// Kernels run; views and empty tensors run none.
  int64_t operators = 0;
  /// Time inside these kernels, summed over threads.
  std::chrono::nanoseconds kernel_time{0};
};

/// Copies from one device to another since `init` or `reset_counters`.
struct CopyCounters {
  int64_t copies = 0;
  int64_t bytes = 0;
};

/// All of them **throw** `ConfigError` before `init`, and for a device that is
/// none of the simulated ones. **Threads**: any.
MemoryStatistics memory_statistics(at::Device device);

/// The peak is the current number of bytes from now on.
void reset_peak(at::Device device);

DeviceCounters device_counters(at::Device device);

/// What was copied from `source` to `destination`; either may be the CPU, but
/// not both.
CopyCounters copy_counters(at::Device source, at::Device destination);

/// Sets the counters of all devices and copies to zero.
void reset_counters();

} // namespace tandem::sim
