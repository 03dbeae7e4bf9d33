#include "flat_transfer.h"

#include <cstdint>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/TensorOptions.h>

namespace tandem::detail {

at::Tensor empty_flat(const std::vector<at::Tensor>& tensors) {
  int64_t num_elems = 0;
  for (const auto& tensor : tensors) {
    num_elems += tensor.numel();
  }
  const auto& first = tensors.front();
  return at::empty(
      {num_elems},
      at::TensorOptions().dtype(first.scalar_type()).device(first.device()));
}

void copy_from_flat(
    const at::Tensor& flat,
    const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t offset_elems = 0;
  for (const auto& tensor : tensors) {
    tensor.copy_(
        flat.narrow(0, offset_elems, tensor.numel()).view(tensor.sizes()));
    offset_elems += tensor.numel();
  }
}

} // namespace tandem::detail
