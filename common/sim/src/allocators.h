#pragma once

#include <c10/core/CachingDeviceAllocator.h>

namespace tandem::sim {

/// Serves the current device.
c10::DeviceAllocator& device_allocator();

/// Takes the place of the CPU's: host memory, but counted on a device inside
/// `CountOn`.
c10::Allocator& host_allocator();

/// Pinned host memory: ordinary memory whose addresses are remembered.
c10::Allocator& pinned_allocator();
bool is_pinned(const void* pointer);

} // namespace tandem::sim
