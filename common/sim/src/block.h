#pragma once

#include <cstddef>

#include <c10/core/Allocator.h>

namespace tandem::sim {

class DeviceMemory;
class UseLog;

/// A block of host memory that counts on `owner` (null: on none) until it is
/// freed; its pointer says that it lies on `device`. A header before the bytes
/// remembers the owner, so that a block can change hands without a copy.
/// **Throws** `c10::OutOfMemoryError`; in hazard mode, `HazardError`.
c10::DataPtr allocate_block(
    DeviceMemory* owner,
    size_t num_bytes,
    at::Device device);

/// What frees blocks, whatever they count on.
void free_block(void* data);

/// Whose memory `pointer` counts on; null if on none or not one of ours.
DeviceMemory* owner_of(const c10::DataPtr& pointer);

/// What streams did with the block; null outside hazard mode, or if it is not
/// one of ours.
UseLog* use_log_of(const c10::DataPtr& pointer);

/// The same block, said to lie on `device`.
c10::DataPtr relabel(c10::DataPtr pointer, at::Device device);

} // namespace tandem::sim
