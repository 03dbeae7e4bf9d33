#include <tandem/core/flat_buffer.h>

#include <algorithm>
#include <iterator>

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

namespace tandem {

FlatLayout make_flat_layout(
    const std::vector<int64_t>& numels,
    int64_t align_elems) {
  FlatLayout layout;
  for (const int64_t numel : numels) {
    layout.offsets_elems.push_back(layout.total_elems);
    const int64_t padded = (numel + align_elems - 1) / align_elems;
    layout.total_elems += padded * align_elems;
  }
  return layout;
}

std::vector<std::vector<size_t>> group_by_type(
    const std::vector<at::Tensor>& tensors) {
  std::vector<std::vector<size_t>> groups;
  for (size_t index = 0; index < tensors.size(); ++index) {
    const auto fits = [&](const std::vector<size_t>& group) {
      const auto& first = tensors[group.front()];
      return first.scalar_type() == tensors[index].scalar_type() &&
          first.device() == tensors[index].device();
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      groups.emplace_back();
      group = std::prev(groups.end());
    }
    group->push_back(index);
  }
  return groups;
}

at::Tensor view_into_flat(
    const at::Tensor& flat,
    int64_t offset_elems,
    const at::Tensor& like) {
  const at::AutoDispatchBelowADInplaceOrView no_view_tracking;
  if (like.is_non_overlapping_and_dense()) {
    return flat.as_strided(like.sizes(), like.strides(), offset_elems);
  }
  return flat.narrow(0, offset_elems, like.numel()).view(like.sizes());
}

at::Tensor in_memory_order(const at::Tensor& tensor) {
  const at::AutoDispatchBelowADInplaceOrView no_view_tracking;
  if (tensor.is_non_overlapping_and_dense()) {
    return tensor.as_strided({tensor.numel()}, {1});
  }
  return tensor.reshape({-1});
}

at::Tensor flatten_copy(const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  parts.reserve(tensors.size());
  for (const auto& tensor : tensors) {
    parts.push_back(tensor.detach().reshape({-1}));
  }
  return at::cat(parts);
}

void unflatten_into(
    const at::Tensor& flat,
    const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t offset_elems = 0;
  for (const auto& tensor : tensors) {
    const auto part = flat.narrow(0, offset_elems, tensor.numel());
    tensor.variable_data().copy_(part.view(tensor.sizes()));
    offset_elems += tensor.numel();
  }
}

} // namespace tandem
