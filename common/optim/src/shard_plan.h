#pragma once

#include <cstdint>
#include <vector>

namespace tandem::detail {

/// Shares parameters out over ranks by their sizes, so that all get about as
/// many elements. The same calls give the same result on every rank.
class ShardPlan {
 public:
  explicit ShardPlan(int64_t world_size);

  /// The rank of each of some more parameters: the largest goes first, each to
  /// the rank with the fewest elements yet.
  std::vector<int64_t> add(const std::vector<int64_t>& numels);

 private:
  std::vector<int64_t> loads_elems_;
};

} // namespace tandem::detail
