#pragma once

#include <cstdint>
#include <functional>

namespace tandem::bench {

/// Runs `function` and returns the floating-point operations of the matrix
/// products and convolutions that it called, on all threads and devices, as
/// LibTorch's profiler counts them. The backward of a convolution is no such
/// call, and so is not counted.
/// **Threads**: one call at a time, and nobody else may compute meanwhile.
int64_t count_flops(const std::function<void()>& function);

} // namespace tandem::bench
