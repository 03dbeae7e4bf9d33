#include "collective_arguments.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

namespace tandem::comm {

c10d::ReduceOp to_c10d(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return c10d::ReduceOp::SUM;
    case ReduceOp::kMean:
      return c10d::ReduceOp::AVG;
    case ReduceOp::kMin:
      return c10d::ReduceOp::MIN;
    case ReduceOp::kMax:
      return c10d::ReduceOp::MAX;
    case ReduceOp::kProduct:
      return c10d::ReduceOp::PRODUCT;
  }
  TORCH_INTERNAL_ASSERT(false, "unknown ReduceOp");
}

void check_contiguous(const std::string& tag, const at::Tensor& tensor) {
  if (!tensor.is_contiguous()) {
    throw ShapeError(fmt::format(
        "{} tensor: expected a contiguous one, got sizes [{}] with strides "
        "[{}]. Use the blocking form, or reduce tensor.contiguous()",
        tag,
        fmt::join(tensor.sizes(), ", "),
        fmt::join(tensor.strides(), ", ")));
  }
}

void check_reducible(
    const std::string& tag,
    const at::Tensor& tensor,
    ReduceOp op) {
  const bool ordered = op == ReduceOp::kMin || op == ReduceOp::kMax;
  if (ordered && tensor.is_complex()) {
    throw ShapeError(fmt::format(
        "{} tensor: expected an ordered dtype for a minimum or maximum, got {}",
        tag,
        toString(tensor.scalar_type())));
  }
  if (op == ReduceOp::kProduct && tensor.is_complex()) {
    throw ShapeError(fmt::format(
        "{} tensor: expected a real dtype for a product, got {}",
        tag,
        toString(tensor.scalar_type())));
  }
  if (op == ReduceOp::kMean && !tensor.is_floating_point() &&
      !tensor.is_complex()) {
    throw ShapeError(fmt::format(
        "{} tensor: expected a floating or complex dtype for a mean, got {}",
        tag,
        toString(tensor.scalar_type())));
  }
}

at::Tensor as_real(const at::Tensor& tensor) {
  return tensor.is_complex() ? at::view_as_real(tensor) : tensor;
}

} // namespace tandem::comm
