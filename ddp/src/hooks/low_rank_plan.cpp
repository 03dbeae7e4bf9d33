#include "hooks/low_rank_plan.h"

#include <algorithm>
#include <cmath>

#include <c10/util/accumulate.h>

namespace tandem::ddp {

namespace {

bool is_worth_it(const LowRankMatrix& matrix, double min_compression_rate) {
  return static_cast<double>(matrix.p_elems() + matrix.q_elems()) *
      min_compression_rate <
      static_cast<double>(matrix.rows * matrix.cols);
}

/// Of rank 0 if the tensor is to be sent as it is.
LowRankMatrix matrix_for(
    size_t tensor,
    const std::vector<int64_t>& shape,
    const PowerSGDOptions& options) {
  const int64_t num_elems = c10::multiply_integers(shape);
  if (num_elems == 0) {
    return {};
  }
  const int64_t rank = options.matrix_approximation_rank();
  if (options.batched()) {
    const auto side = static_cast<int64_t>(
        std::ceil(std::sqrt(static_cast<double>(num_elems))));
    return {tensor, side, side, std::min(side, rank)};
  }
  if (shape.size() < 2) {
    return {};
  }
  const int64_t rows = shape[0];
  const int64_t cols = num_elems / rows;
  const LowRankMatrix matrix{tensor, rows, cols, std::min({rows, cols, rank})};
  return is_worth_it(matrix, options.min_compression_rate()) ? matrix
                                                             : LowRankMatrix{};
}

} // namespace

LowRankPlan make_low_rank_plan(
    const std::vector<std::vector<int64_t>>& shapes,
    const PowerSGDOptions& options) {
  LowRankPlan plan;
  for (size_t tensor = 0; tensor < shapes.size(); ++tensor) {
    const auto matrix = matrix_for(tensor, shapes[tensor], options);
    if (matrix.rank == 0) {
      plan.plain.push_back(tensor);
      plan.plain_elems += c10::multiply_integers(shapes[tensor]);
      continue;
    }
    plan.matrices.push_back(matrix);
    plan.p_elems += matrix.p_elems();
    plan.q_elems += matrix.q_elems();
  }
  return plan;
}

} // namespace tandem::ddp
