#pragma once

#include "harness/bench_recipe.h"
#include "harness/mode.h"
#include "placement/placement.h"

namespace tandem::bench {

/// How far gradients with a communication hook are from the ranks' mean: norm
/// of the difference over norm of the mean.
struct GradientError {
  /// Mean over `kErrorSteps` steps.
  double of_step = 0;
  /// Of the sum of those steps' gradients, which is what error feedback keeps
  /// small.
  double of_sum = 0;
};

inline constexpr int kErrorSteps = 10;

/// Trains without a hook, and takes the gradients with the mode's at the same
/// parameters.
/// **Collective** over the worker's ranks.
GradientError measure_gradient_error(
    const WorkerScope& worker,
    const Mode& mode,
    const BenchRecipe& recipe);

} // namespace tandem::bench
