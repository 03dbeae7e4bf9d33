#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <tandem/optim/model_averager.h>

namespace tandem {

/// An optimizer whose step is followed by an averager's: with `ddp::
/// post_local_sgd_hook`, post-local SGD. The averager's warm-up has as many
/// steps as the hook's.
///
/// It is used as the optimizer inside: schedulers, `zero_grad`, options in
/// `param_groups` and groups that are added work on it, and reach the inside at
/// each step. Its `state()` is empty: see `inner`.
///
/// **Owns** the optimizer inside; shares the averager.
/// **Source**: `torch.distributed.optim.PostLocalSGDOptimizer`
///
/// Example:
/// ```cpp
/// model->register_comm_hook(tandem::ddp::post_local_sgd_hook(
///     tandem::ddp::PostLocalSGDOptions().start_step(100)));
/// tandem::PostLocalSGDOptimizer optimizer(
///     std::make_unique<torch::optim::SGD>(model->parameters(), 0.1),
///     std::make_shared<tandem::PeriodicModelAverager>(
///         /*period=*/4, /*warmup_steps=*/100));
/// ```
class PostLocalSGDOptimizer : public torch::optim::Optimizer {
 public:
  /// **Throws** `ConfigError` if either is null.
  PostLocalSGDOptimizer(
      std::unique_ptr<torch::optim::Optimizer> inner,
      std::shared_ptr<ModelAverager> averager);

  /// Steps inside, then averages all parameters if it is time to. Returns the
  /// closure's loss.
  /// **Collective**. **Throws** as the optimizer inside and the averager.
  at::Tensor step(LossClosure closure = nullptr) override;

  /// What the optimizer inside writes, which it can read without this one, and
  /// the averager's step.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Reads it, or what the optimizer inside has written alone: then the
  /// averager begins at step 0, and rank 0 is warned.
  void load(torch::serialize::InputArchive& archive) override;

  torch::optim::Optimizer& inner() {
    return *inner_;
  }
  ModelAverager& averager() {
    return *averager_;
  }

 private:
  std::vector<at::Tensor> all_parameters() const;
  void hand_groups_in();

  std::unique_ptr<torch::optim::Optimizer> inner_;
  std::shared_ptr<ModelAverager> averager_;
};

} // namespace tandem
