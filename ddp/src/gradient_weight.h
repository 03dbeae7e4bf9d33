#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// How much this rank's gradients of one forward count in their mean over the
/// ranks. The ranks' weights are added up while forward runs.
class GradientWeight {
 public:
  /// Starts adding; the number travels through CPU memory. **Collective**.
  GradientWeight(std::shared_ptr<comm::ProcessGroup> group, double weight);

  /// This rank's.
  double weight() const {
    return weight_;
  }
  /// All ranks'. Waits for it.
  /// **Throws** `ConfigError` on every rank if all weights are 0; as
  /// `ProcessGroup::wait`.
  double sum();

 private:
  std::shared_ptr<comm::ProcessGroup> group_;
  double weight_;
  at::Tensor sum_; // [1]
  /// Null once the sum is there.
  c10::intrusive_ptr<c10d::Work> work_;
};

} // namespace tandem::detail
