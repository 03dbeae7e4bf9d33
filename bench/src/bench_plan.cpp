#include "bench_plan.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

#include "placement/refresh_policy_names.h"

namespace tandem::bench {

namespace {

std::vector<Activity> activities_of(const BenchOptions& options) {
  auto names = options.activities;
  if (names.empty()) {
    names = {"train"};
    if (options.workload == "many-small-tensors") {
      names.insert(names.end(), {"evaluate", "refresh", "copy-each"});
    }
  }
  std::vector<Activity> activities;
  activities.reserve(names.size());
  for (const auto& name : names) {
    activities.push_back(activity_from_name(name));
  }
  return activities;
}

/// Workers of the modes that have several.
int64_t resolve_workers(const BenchOptions& options) {
  auto request = options.placement;
  request.strategy = Strategy::kDP;
  const int64_t workers = resolve_placement(request).workers.value();
  if (options.batch % workers != 0) {
    throw ConfigError(fmt::format(
        "--batch: expected a multiple of the {} workers, got {}",
        workers,
        options.batch));
  }
  return workers;
}

void check_hooks_are_timed(
    const BenchOptions& options,
    const std::vector<Mode>& modes) {
  const bool are_timed =
      std::any_of(modes.begin(), modes.end(), [](const Mode& mode) {
        return !mode.hook.empty();
      });
  if (!options.hooks.empty() && !are_timed) {
    throw ConfigError(fmt::format(
        "--hook: expected ddp among the strategies and a training step among "
        "the activities, got {}. Add --strategy ddp",
        fmt::join(options.strategies, ",")));
  }
}

} // namespace

BenchRecipe recipe_of(const BenchOptions& options) {
  BenchRecipe recipe;
  recipe.workload = architecture_from_name(options.workload);
  recipe.batch = options.batch;
  recipe.seed = options.seed;
  if (!options.refresh_policy.empty()) {
    recipe.refresh_policy = refresh_policy_from_name(options.refresh_policy);
  }
  if (options.bucket_cap_mib) {
    recipe.bucket_cap_bytes =
        static_cast<int64_t>(*options.bucket_cap_mib * (1 << 20));
  }
  if (options.first_bucket_mib) {
    recipe.first_bucket_bytes =
        static_cast<int64_t>(*options.first_bucket_mib * (1 << 20));
  }
  return recipe;
}

PlacementRequest placement_request(const BenchOptions& options) {
  auto request = options.placement;
  request.sim.link_latency = std::chrono::nanoseconds(
      static_cast<int64_t>(options.link_latency_us * 1e3));
  request.sim.link_bytes_per_s = options.link_gb_per_s * 1e9;
  return request;
}

BenchPlan plan_of(const BenchOptions& options) {
  std::vector<TimedStrategy> strategies;
  strategies.reserve(options.strategies.size());
  for (const auto& name : options.strategies) {
    strategies.push_back(timed_strategy_from_name(name));
  }
  const int64_t workers = resolve_workers(options);
  BenchPlan plan;
  plan.modes = plan_modes(
      {std::move(strategies),
       activities_of(options),
       options.hooks,
       workers,
       options.placement.threads,
       options.placement.device != "cuda"});
  if (plan.modes.empty()) {
    throw ConfigError(fmt::format(
        "--strategy, --activity: expected something to time, got {} with {}",
        fmt::join(options.strategies, ","),
        fmt::join(options.activities, ",")));
  }
  check_hooks_are_timed(options, plan.modes);
  plan.recipe = recipe_of(options);
  plan.turns = options.turns;
  plan.worker_arguments =
      [options](const Mode& mode, int64_t index, int64_t port) {
        return worker_words(options, mode, index, port);
      };
  return plan;
}

} // namespace tandem::bench
