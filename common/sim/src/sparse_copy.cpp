#include "kernels.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <tandem/core/errors.h>

#include "tensor_parts.h"

namespace tandem::sim {

namespace {

at::Tensor& copy_sparse(
    at::Tensor& self,
    const at::Tensor& source,
    bool non_blocking) {
  if (!self.is_sparse() || !source.is_sparse()) {
    throw ShapeError(
        "copy_: expected two sparse tensors or two dense ones, got layouts " +
        c10::str(self.layout(), " and ", source.layout()) +
        ". Call to_dense()");
  }
  if (self.is_same(source)) {
    return self;
  }
  const c10::DeviceGuard guard(self.device());
  const auto part = [&](const at::Tensor& tensor, at::ScalarType dtype) {
    return tensor.to(
        tensor.options().device(self.device()).dtype(dtype),
        non_blocking,
        /*copy=*/true);
  };
  set_sparse(
      self,
      part(indices_of(source), at::kLong),
      part(values_of(source), self.scalar_type()),
      source);
  return self;
}

} // namespace

std::set<std::string> register_sparse_copy(torch::Library& sparse) {
  sparse.impl("copy_", &copy_sparse);
  return {"copy_"};
}

} // namespace tandem::sim
