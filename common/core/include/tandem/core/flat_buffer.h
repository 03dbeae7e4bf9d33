#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem {

/// Where tensors lie in one flat buffer.
struct FlatLayout {
  /// First element of each tensor.
  std::vector<int64_t> offsets_elems;
  int64_t total_elems = 0;
};

/// Lays tensors of these sizes out one after the other, each beginning at a
/// multiple of `align_elems`.
FlatLayout make_flat_layout(
    const std::vector<int64_t>& numels,
    int64_t align_elems = 1);

/// Indices of tensors that can share a flat buffer: groups of one dtype and
/// device, in order of first appearance.
std::vector<std::vector<size_t>> group_by_type(
    const std::vector<at::Tensor>& tensors);

/// A view of `flat` from `offset_elems` on with the shape of `like`, and its
/// strides where `like` is dense without overlap (so that channels_last stays),
/// contiguous ones otherwise. Autograd does not know it is a view, so that
/// `zero_grad` may detach it.
at::Tensor view_into_flat(
    const at::Tensor& flat,
    int64_t offset_elems,
    const at::Tensor& like);

/// The elements of `tensor` in the order in which they lie in memory, 1-D: a
/// view that autograd does not know where `tensor` is dense without overlap,
/// else a copy in the order of indices.
at::Tensor in_memory_order(const at::Tensor& tensor);

/// Copies tensors of one dtype and device into one new 1-D tensor, laid out
/// without padding. Records no history.
at::Tensor flatten_copy(const std::vector<at::Tensor>& tensors);

/// The reverse: copies the parts of `flat` into `tensors`. Bypasses autograd
/// and leaves version counters as they are.
void unflatten_into(
    const at::Tensor& flat,
    const std::vector<at::Tensor>& tensors);

} // namespace tandem
