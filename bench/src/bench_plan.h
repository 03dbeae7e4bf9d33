#pragma once

#include "bench_options.h"
#include "harness/bench_run.h"

namespace tandem::bench {

/// What the options say of every mode's network and of where it runs.
/// **Throws** `ConfigError` for names that there are not.
BenchRecipe recipe_of(const BenchOptions& options);
PlacementRequest placement_request(const BenchOptions& options);

/// The run that the options ask for, on this machine.
/// **Throws** `ConfigError` naming the option that cannot be satisfied.
BenchPlan plan_of(const BenchOptions& options);

} // namespace tandem::bench
