#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// Mean over all rows of all ranks, equal on every rank, from this rank's sum.
/// Its gradient is the world size times that of this rank's part of the mean:
/// averaged over the ranks, exactly the mean's gradient, however uneven the
/// rows. **Collective**: one all-reduce of two numbers, `sums`.
class LossMean {
 public:
  /// `loss_sum`: 0-dim.
  LossMean(const at::Tensor& loss_sum, int64_t rows);

  /// This rank's sum and rows; to be summed over the ranks. [2]
  at::Tensor& sums() {
    return sums_;
  }

  /// The mean, once `sums` has been summed.
  at::Tensor mean(int64_t world_size) const;

 private:
  at::Tensor loss_sum_;
  at::Tensor sums_;
};

} // namespace tandem::detail
