#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::detail {

/// All dimensions of an [N, C, ...] tensor but the second.
std::vector<int64_t> dims_but_channels(const at::Tensor& tensor);

/// `values` [C], shaped to broadcast over `like` [N, C, ...].
at::Tensor per_channel(const at::Tensor& values, const at::Tensor& like);

/// (`input` - `center`) * `scale` + `shift` for each channel, in the dtype of
/// `input`. Differentiable, twice too; keeps no tensor of the input's size but
/// `input`, and loses no digits where the center is far from zero.
/// **Shapes**: `input` [N, C, ...], the others [C].
at::Tensor scale_about_center(
    const at::Tensor& input,
    const at::Tensor& center,
    const at::Tensor& scale,
    const at::Tensor& shift);

} // namespace tandem::detail
