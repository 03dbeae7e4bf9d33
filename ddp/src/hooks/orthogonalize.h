#pragma once

#include <ATen/core/Tensor.h>

namespace tandem::ddp {

/// Makes the columns of `matrix` orthonormal, in place, each with `epsilon`
/// added to its norm. Columns that the earlier ones span become zero, so that
/// no rounding error is blown up to a direction. Never waits for a device.
void orthogonalize(const at::Tensor& matrix, double epsilon); // [rows, rank]

} // namespace tandem::ddp
