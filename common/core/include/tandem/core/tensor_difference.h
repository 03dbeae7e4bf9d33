#pragma once

#include <ATen/core/Tensor.h>

namespace tandem {

/// The largest absolute difference of two tensors' elements, in double, on any
/// devices; 0 if both are undefined or empty. The largest double if they cannot
/// be compared: one is undefined, the shapes differ, a value is not finite.
double max_abs_difference(const at::Tensor& expected, const at::Tensor& actual);

} // namespace tandem
