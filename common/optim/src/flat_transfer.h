#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::detail {

/// A new tensor for the elements of all of `tensors`, which share dtype and
/// device. [elements]
at::Tensor empty_flat(const std::vector<at::Tensor>& tensors);

/// Copies the parts of `flat` into `tensors`, which know of the change: graphs
/// that were made before no longer fit, as after an optimizer's step.
void copy_from_flat(
    const at::Tensor& flat,
    const std::vector<at::Tensor>& tensors);

} // namespace tandem::detail
