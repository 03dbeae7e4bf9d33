#pragma once

#include <cstdint>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

namespace tandem::train {

/// A learning rate that falls in a straight line from the optimizer's to 0 over
/// `num_steps` calls of `step()`, and stays there.
class LinearDecay : public torch::optim::LRScheduler {
 public:
  /// **Throws** `ConfigError` if `num_steps` is below 1.
  LinearDecay(torch::optim::Optimizer& optimizer, int64_t num_steps);

 protected:
  std::vector<double> get_lrs() override;

 private:
  std::vector<double> initial_;
  int64_t num_steps_;
};

} // namespace tandem::train
