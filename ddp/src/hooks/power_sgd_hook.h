#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/named_tensors.h>
#include <tandem/ddp/comm_hooks.h>

#include "hooks/error_feedback.h"
#include "hooks/low_rank_plan.h"

namespace tandem::ddp {

class PowerSGDHook : public comm::CommHook {
 public:
  explicit PowerSGDHook(const PowerSGDOptions& options) : options_(options) {}

  std::string name() const override;
  std::string configuration() const override;
  comm::TensorFuture run(comm::GradBucket& bucket) override;
  at::Tensor finish(comm::GradBucket& bucket, const at::Tensor& reduced)
      override;

 private:
  /// What lasts from step to step, by bucket.
  struct Memory {
    std::vector<NamedTensor> parameters;
    LowRankPlan plan;
    /// The random factors that it began with: a column of Q that a step made
    /// zero (of a parameter without gradients) begins with them anew.
    at::Tensor random_q; // [plan.q_elems]
    at::Tensor q; // [plan.q_elems]
    bool is_compressed = false;
  };

  /// This bucket's, new where its parameters are. Draws what is random.
  Memory& memory_of(const comm::GradBucket& bucket);
  /// The tensors that the plan speaks of: the gradients, or all in one.
  std::vector<at::Tensor> tensors_of(const comm::GradBucket& bucket) const;
  void prepare_q(const Memory& memory) const;
  /// Normal, in the dtype and on the device of `like`.
  at::Tensor random_factors(const LowRankPlan& plan, const at::Tensor& like);

  PowerSGDOptions options_;
  ErrorFeedback feedback_;
  std::map<size_t, Memory> memories_;
  int64_t iteration_ = 0;
  int64_t num_draws_ = 0;
};

} // namespace tandem::ddp
