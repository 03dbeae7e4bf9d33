#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tandem/ddp/comm_hooks.h>

namespace tandem::ddp {

/// A tensor of a bucket that two factors stand for: P [rows, rank] and
/// Q [cols, rank].
struct LowRankMatrix {
  /// Which of the bucket's tensors.
  size_t tensor = 0;
  int64_t rows = 0;
  /// rows * cols may be more than the tensor has: the rest is zero.
  int64_t cols = 0;
  int64_t rank = 0;

  int64_t p_elems() const {
    return rows * rank;
  }
  int64_t q_elems() const {
    return cols * rank;
  }
};

/// How PowerSGD sends the tensors of a bucket: as they are, or as factors.
struct LowRankPlan {
  std::vector<size_t> plain;
  std::vector<LowRankMatrix> matrices;
  int64_t plain_elems = 0;
  int64_t p_elems = 0;
  int64_t q_elems = 0;
};

LowRankPlan make_low_rank_plan(
    const std::vector<std::vector<int64_t>>& shapes,
    const PowerSGDOptions& options);

} // namespace tandem::ddp
