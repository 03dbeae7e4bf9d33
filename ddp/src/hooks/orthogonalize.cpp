#include "hooks/orthogonalize.h"

#include <cstdint>
#include <limits>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace tandem::ddp {

namespace {

/// Roundings that a projection may leave, in steps of the type.
constexpr double kRoundingSteps = 16;

/// Rounding of a column, relative to what it was before projection.
double rounding_of(const at::Tensor& matrix) {
  return kRoundingSteps *
      (matrix.scalar_type() == at::kDouble
           ? std::numeric_limits<double>::epsilon()
           : std::numeric_limits<float>::epsilon());
}

} // namespace

void orthogonalize(const at::Tensor& matrix, double epsilon) {
  const double rounding = rounding_of(matrix);
  for (int64_t index = 0; index < matrix.size(1); ++index) {
    const auto column = matrix.select(1, index);
    const auto norm_before = column.norm();
    const auto earlier = matrix.narrow(1, 0, index);
    // Once leaves what rounding left of it; twice is enough.
    for (int pass = 0; index > 0 && pass < 2; ++pass) {
      column.sub_(earlier.matmul(earlier.t().matmul(column)));
    }
    const auto norm = column.norm();
    column.div_(norm + epsilon)
        .masked_fill_(norm.le(norm_before * rounding), 0);
  }
}

} // namespace tandem::ddp
