#include "shard_plan.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

namespace tandem::detail {

ShardPlan::ShardPlan(int64_t world_size)
    : loads_elems_(static_cast<size_t>(world_size)) {}

std::vector<int64_t> ShardPlan::add(const std::vector<int64_t>& numels) {
  std::vector<size_t> order(numels.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    return std::pair(-numels[left], left) < std::pair(-numels[right], right);
  });
  std::vector<int64_t> ranks(numels.size());
  for (const size_t index : order) {
    const auto least =
        std::min_element(loads_elems_.begin(), loads_elems_.end());
    ranks[index] = std::distance(loads_elems_.begin(), least);
    *least += numels[index];
  }
  return ranks;
}

} // namespace tandem::detail
