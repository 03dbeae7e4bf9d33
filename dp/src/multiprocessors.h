#pragma once

#include <cstdint>
#include <optional>

#include <c10/core/Device.h>

namespace tandem::detail {

/// Multiprocessors of a CUDA device; nothing for other devices.
std::optional<int64_t> num_multiprocessors(at::Device device);

} // namespace tandem::detail
