#include "harness/mode.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

template <typename Value>
using Names = std::vector<std::pair<Value, std::string>>;

const Names<TimedStrategy>& strategies_by_name() {
  static const Names<TimedStrategy> names{
      {TimedStrategy::kBare, "bare"},
      {TimedStrategy::kSingle, "single"},
      {TimedStrategy::kDP, "dp"},
      {TimedStrategy::kDDP, "ddp"},
      {TimedStrategy::kDDPCopies, "ddp-copies"},
      {TimedStrategy::kDDPNoSync, "ddp-nosync"},
      {TimedStrategy::kDDPC10d, "ddp-c10d"},
      {TimedStrategy::kDDPC10dViews, "ddp-c10d-views"},
      {TimedStrategy::kDDPNaive, "ddp-naive"},
      {TimedStrategy::kPythonDDP, "python-ddp"},
      {TimedStrategy::kPythonNoSync, "python-nosync"}};
  return names;
}

const Names<Activity>& activities_by_name() {
  static const Names<Activity> names{
      {Activity::kTrain, "train"},
      {Activity::kMeanLoss, "mean-loss"},
      {Activity::kEvaluate, "evaluate"},
      {Activity::kRefresh, "refresh"},
      {Activity::kCopyEach, "copy-each"}};
  return names;
}

template <typename Value>
std::vector<std::string> all_names(const Names<Value>& names) {
  std::vector<std::string> all;
  for (const auto& entry : names) {
    all.push_back(entry.second);
  }
  return all;
}

template <typename Value>
std::string name_of(const Names<Value>& names, Value value) {
  const auto found =
      std::find_if(names.begin(), names.end(), [&](const auto& entry) {
        return entry.first == value;
      });
  return found->second;
}

template <typename Value>
Value value_of(
    const Names<Value>& names,
    const std::string& subject,
    const std::string& name) {
  for (const auto& entry : names) {
    if (entry.second == name) {
      return entry.first;
    }
  }
  throw ConfigError(fmt::format(
      "{}: expected one of {}, got '{}'",
      subject,
      fmt::join(all_names(names), ", "),
      name));
}

bool is_peer(TimedStrategy strategy) {
  return strategy == TimedStrategy::kDDPC10d ||
      strategy == TimedStrategy::kDDPC10dViews ||
      strategy == TimedStrategy::kDDPNaive || runs_python(strategy);
}

bool makes_sense(TimedStrategy strategy, Activity activity) {
  if (is_peer(strategy)) {
    return activity == Activity::kTrain;
  }
  switch (activity) {
    case Activity::kRefresh:
    case Activity::kCopyEach:
      return strategy == TimedStrategy::kDP;
    case Activity::kMeanLoss:
      return strategy != TimedStrategy::kBare;
    default:
      return true;
  }
}

bool has_one_worker(TimedStrategy strategy) {
  return strategy == TimedStrategy::kBare || strategy == TimedStrategy::kSingle;
}

bool reduces(TimedStrategy strategy, Activity activity) {
  return strategy == TimedStrategy::kDDP &&
      (activity == Activity::kTrain || activity == Activity::kMeanLoss);
}

void add_modes(
    const ModeChoices& choices,
    TimedStrategy strategy,
    Activity activity,
    std::vector<Mode>& modes) {
  if (!has_one_worker(strategy)) {
    Mode mode{strategy, activity, choices.workers, choices.threads, ""};
    modes.push_back(mode);
    if (reduces(strategy, activity)) {
      for (const auto& hook : choices.hooks) {
        mode.hook = hook;
        modes.push_back(mode);
      }
    }
    return;
  }
  modes.push_back({strategy, activity, 1, 1, ""});
  const int64_t all_threads = choices.workers * choices.threads;
  if (strategy == TimedStrategy::kSingle && choices.single_at_all_threads &&
      all_threads > 1) {
    modes.push_back({strategy, activity, 1, all_threads, ""});
  }
}

} // namespace

std::string timed_strategy_name(TimedStrategy strategy) {
  return name_of(strategies_by_name(), strategy);
}

TimedStrategy timed_strategy_from_name(const std::string& name) {
  return value_of(strategies_by_name(), "strategy", name);
}

std::vector<std::string> timed_strategy_names() {
  return all_names(strategies_by_name());
}

std::string activity_name(Activity activity) {
  return name_of(activities_by_name(), activity);
}

Activity activity_from_name(const std::string& name) {
  return value_of(activities_by_name(), "activity", name);
}

std::vector<std::string> activity_names() {
  return all_names(activities_by_name());
}

bool has_ranks(TimedStrategy strategy) {
  return strategy == TimedStrategy::kDDP ||
      strategy == TimedStrategy::kDDPCopies ||
      strategy == TimedStrategy::kDDPNoSync || is_peer(strategy);
}

bool runs_python(TimedStrategy strategy) {
  return strategy == TimedStrategy::kPythonDDP ||
      strategy == TimedStrategy::kPythonNoSync;
}

std::vector<Mode> plan_modes(const ModeChoices& choices) {
  std::vector<Mode> modes;
  for (const auto strategy : choices.strategies) {
    for (const auto activity : choices.activities) {
      if (makes_sense(strategy, activity)) {
        add_modes(choices, strategy, activity, modes);
      }
    }
  }
  return modes;
}

PlacementRequest placement_of(const Mode& mode, PlacementRequest request) {
  request.workers = mode.workers;
  request.threads = mode.threads;
  request.independent = mode.strategy == TimedStrategy::kDDPNoSync;
  if (has_ranks(mode.strategy)) {
    request.strategy = Strategy::kDDP;
  } else if (mode.strategy == TimedStrategy::kDP) {
    request.strategy = Strategy::kDP;
  } else {
    request.strategy = Strategy::kSingle;
  }
  return request;
}

} // namespace tandem::bench
