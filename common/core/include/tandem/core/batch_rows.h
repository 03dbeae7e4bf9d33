#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem {

/// Rows of a batch: the size, in `batch_dim`, of the first of its tensors that
/// has this dimension. Nothing if none has.
std::optional<int64_t> batch_rows(
    const std::vector<at::Tensor>& tensors,
    int64_t batch_dim);

} // namespace tandem
