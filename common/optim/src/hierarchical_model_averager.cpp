#include <tandem/optim/hierarchical_model_averager.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem {

namespace {

constexpr auto kSubject = "[optim] HierarchicalModelAverager's";

void check_level(const std::vector<AveragingLevel>& levels, size_t index) {
  const auto& level = levels[index];
  if (!level.group) {
    throw ConfigError(fmt::format(
        "{} level {}: expected a process group, got none",
        kSubject,
        index));
  }
  const int64_t previous_period = index == 0 ? 0 : levels[index - 1].period;
  if (level.period <= previous_period) {
    throw ConfigError(fmt::format(
        "{} level {}: expected a period above {}, got {}",
        kSubject,
        index,
        previous_period,
        level.period));
  }
  const int64_t previous_size =
      index == 0 ? 1 : levels[index - 1].group->size();
  if (level.group->size() < previous_size) {
    throw ConfigError(fmt::format(
        "{} level {}: expected at least {} ranks as in the level before, got "
        "{}",
        kSubject,
        index,
        previous_size,
        level.group->size()));
  }
}

const std::vector<AveragingLevel>& checked(
    const std::vector<AveragingLevel>& levels,
    int64_t warmup_steps) {
  if (levels.empty()) {
    throw ConfigError(
        fmt::format("{} levels: expected at least one, got none", kSubject));
  }
  if (warmup_steps < 0) {
    throw ConfigError(fmt::format(
        "{} warmup_steps: expected at least 0, got {}",
        kSubject,
        warmup_steps));
  }
  for (size_t i = 0; i < levels.size(); ++i) {
    check_level(levels, i);
  }
  return levels;
}

} // namespace

HierarchicalModelAverager::HierarchicalModelAverager(
    std::vector<AveragingLevel> levels,
    int64_t warmup_steps)
    : ModelAverager(checked(levels, warmup_steps).back().group),
      levels_(std::move(levels)),
      warmup_steps_(warmup_steps) {}

comm::ProcessGroup* HierarchicalModelAverager::group_due_at(
    int64_t step) const {
  if (step < warmup_steps_) {
    return nullptr;
  }
  const auto due = std::find_if(
      levels_.rbegin(),
      levels_.rend(),
      [step](const AveragingLevel& level) { return step % level.period == 0; });
  return due == levels_.rend() ? nullptr : due->group.get();
}

} // namespace tandem
