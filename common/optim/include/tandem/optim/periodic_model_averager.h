#pragma once

#include <cstdint>
#include <memory>

#include <tandem/comm/process_group.h>
#include <tandem/optim/model_averager.h>

namespace tandem {

/// Averages after step `warmup_steps`, counted from 0, and every `period` steps
/// from there on: local SGD. With a period of 1 gradients that are averaged in
/// backward cost no more, and overlap with it.
/// **Source**: Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use
/// Local SGD", ICLR 2020
class PeriodicModelAverager : public ModelAverager {
 public:
  /// `group` null: the thread's default group.
  /// **Throws** `ConfigError` if `period` is below 1 or `warmup_steps` below 0.
  explicit PeriodicModelAverager(
      int64_t period,
      int64_t warmup_steps = 0,
      std::shared_ptr<comm::ProcessGroup> group = nullptr);

 protected:
  comm::ProcessGroup* group_due_at(int64_t step) const override;

 private:
  int64_t period_;
  int64_t warmup_steps_;
};

} // namespace tandem
