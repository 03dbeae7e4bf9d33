#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/comm/process_group.h>
#include <tandem/optim/model_averager.h>

namespace tandem {

/// Ranks that are averaged over every `period` steps.
struct AveragingLevel {
  int64_t period = 1;
  std::shared_ptr<comm::ProcessGroup> group;
};

/// Averages often over few ranks (those of a host), seldom over many. From step
/// `warmup_steps` on, counted from 0, a step whose number is a multiple of a
/// level's period is averaged over that level's group, the last such level's.
/// **Source**: PyTorch's `HierarchicalModelAverager`
///
/// Example:
/// ```cpp
/// tandem::HierarchicalModelAverager averager(
///     {{.period = 4, .group = host}, {.period = 16, .group = world}});
/// ```
class HierarchicalModelAverager : public ModelAverager {
 public:
  /// **Throws** `ConfigError` without levels, for a level without group, unless
  /// periods grow from one level to the next and groups do not shrink, or if
  /// `warmup_steps` is below 0.
  explicit HierarchicalModelAverager(
      std::vector<AveragingLevel> levels,
      int64_t warmup_steps = 0);

 protected:
  comm::ProcessGroup* group_due_at(int64_t step) const override;

 private:
  std::vector<AveragingLevel> levels_;
  int64_t warmup_steps_;
};

} // namespace tandem
