#pragma once

#include <cstdint>
#include <optional>

#include <tandem/train/results.h>

#include "placement/placement.h"
#include "workloads/classifier.h"
#include "workloads/image_data.h"

namespace tandem::bench {

/// What a training computes, wherever it runs.
struct TrainRecipe {
  Architecture model = Architecture::kCnn;
  ImageDataOptions data;
  /// Rows of a step, over all workers.
  int64_t batch = 128;
  double learning_rate = 0.07;
  /// The learning rate falls to 0 over the training; else it is constant.
  bool decay = true;
  /// Of the initial values and of the order of samples.
  uint64_t seed = 0;
  /// Absent with `steps` given: as many as the steps need.
  std::optional<int64_t> epochs;
  std::optional<int64_t> steps;
};

/// Trains and evaluates as this worker; what comes back is the same on every
/// rank but for `step_ms`, which is the rank's own.
/// **Collective** over the workers' ranks.
/// **Throws** `ConfigError` if the batch cannot be shared out equally, or data
/// is missing.
train::ResultRow run_training(
    const WorkerScope& worker,
    const TrainRecipe& recipe);

} // namespace tandem::bench
