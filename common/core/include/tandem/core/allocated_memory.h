#pragma once

#include <cstdint>
#include <optional>

#include <c10/core/Device.h>

namespace tandem {

/// What tensors occupy on a device, by its allocator's statistics.
struct AllocatedMemory {
  int64_t current_bytes = 0;
  /// The most since the program began or the peak was reset.
  int64_t peak_bytes = 0;
};

/// Nothing for the CPU, and for devices whose allocator keeps no statistics.
/// **Threads**: any.
std::optional<AllocatedMemory> allocated_memory(at::Device device);

/// The memory of `device` as a whole; nothing where that is unknown or without
/// a limit.
std::optional<int64_t> total_memory_bytes(at::Device device);

} // namespace tandem
