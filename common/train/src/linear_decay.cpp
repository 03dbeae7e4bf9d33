#include <tandem/train/linear_decay.h>

#include <algorithm>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::train {

LinearDecay::LinearDecay(torch::optim::Optimizer& optimizer, int64_t num_steps)
    : LRScheduler(optimizer),
      initial_(get_current_lrs()),
      num_steps_(num_steps) {
  if (num_steps < 1) {
    throw ConfigError(fmt::format(
        "LinearDecay: num_steps: expected at least 1, got {}",
        num_steps));
  }
}

std::vector<double> LinearDecay::get_lrs() {
  // LibTorch counts this call after it.
  const int64_t done = std::min<int64_t>(int64_t{step_count_} + 1, num_steps_);
  const double left =
      static_cast<double>(num_steps_ - done) / static_cast<double>(num_steps_);
  auto rates = initial_;
  for (double& rate : rates) {
    rate *= left;
  }
  return rates;
}

} // namespace tandem::train
