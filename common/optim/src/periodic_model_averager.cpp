#include <tandem/optim/periodic_model_averager.h>

#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem {

PeriodicModelAverager::PeriodicModelAverager(
    int64_t period,
    int64_t warmup_steps,
    std::shared_ptr<comm::ProcessGroup> group)
    : ModelAverager(std::move(group)),
      period_(period),
      warmup_steps_(warmup_steps) {
  if (period < 1) {
    throw ConfigError(fmt::format(
        "[optim] PeriodicModelAverager's period: expected at least 1, got {}",
        period));
  }
  if (warmup_steps < 0) {
    throw ConfigError(fmt::format(
        "[optim] PeriodicModelAverager's warmup_steps: expected at least 0, "
        "got {}",
        warmup_steps));
  }
}

comm::ProcessGroup* PeriodicModelAverager::group_due_at(int64_t step) const {
  const bool is_due =
      step >= warmup_steps_ && (step - warmup_steps_) % period_ == 0;
  return is_due ? process_group().get() : nullptr;
}

} // namespace tandem
