#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/core/tree_visitors.h>

namespace tandem::detail {

/// Sum of `losses` (per row, or already a sum) as a tensor with `batch_dim` + 1
/// dimensions of size 1.
at::Tensor sum_of_losses(const at::Tensor& losses, int64_t batch_dim);

/// Size of the first defined tensor of `targets` in `batch_dim`.
/// **Throws** `ShapeError` if there is none.
int64_t count_rows(const std::vector<at::Tensor>& targets, int64_t batch_dim);

} // namespace tandem::detail
