#pragma once

#include <string>

#include "harness/bench_recipe.h"
#include "harness/mode.h"
#include "placement/placement.h"

namespace tandem::bench {

/// What one worker found.
struct Verification {
  double max_abs_diff = 0;
  /// The first thing that differs by `kVerifyTolerance` or more, for example
  /// "step 2: 'layers.0.weight'"; empty if nothing does.
  std::string first_mismatch;
};

/// Does what the mode does three times in double precision, on a small batch,
/// and compares each outcome with that of the bare network on the rows of all
/// workers (independent ones: on their own). Parameters change between the
/// steps, as `torch::optim::SGD` changes them: without moving a version
/// counter.
/// **Collective** over the worker's ranks.
Verification verify_mode(
    const WorkerScope& worker,
    const Mode& mode,
    BenchRecipe recipe);

} // namespace tandem::bench
