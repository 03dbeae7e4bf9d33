#include "gradient_scale.h"

#include <cstdint>

namespace tandem::detail {

GradientScale gradient_scale(
    const DistributedDataParallelOptions& options,
    int64_t world_size,
    GradientWeight* weight,
    bool has_hook) {
  const auto num_ranks = static_cast<double>(world_size);
  const double own = weight != nullptr ? weight->weight() : 1;
  const double total = weight != nullptr ? weight->sum() : num_ranks;
  if (has_hook) {
    return {total / own / num_ranks, 1};
  }
  if (options.reduce_op() == comm::ReduceOp::kSum) {
    return {1, 1};
  }
  if (const auto factor = options.gradient_predivide_factor()) {
    return {*factor / own, total / *factor};
  }
  return {total / own, 1};
}

} // namespace tandem::detail
