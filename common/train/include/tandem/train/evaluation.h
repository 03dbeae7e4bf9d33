#pragma once

#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include <tandem/core/parallel_module.h>
#include <tandem/train/batch_source.h>

namespace tandem::train {

/// Scores of a batch, [rows, classes]; the batch is on the wrapper's device.
using ScoreFunction = std::function<at::Tensor(const Batch&)>;

/// Means over the samples of all ranks; not a number if there was no sample.
struct Evaluation {
  /// Cross-entropy.
  double loss = 0;
  /// Share of samples whose highest score is that of their class.
  double accuracy = 0;
  int64_t num_samples = 0;
};

/// Evaluates a classifier on what every rank's `source` yields in its epoch 0,
/// in eval mode and without gradients. Sums and counts are added over the
/// ranks, so each sample weighs the same however unevenly they are shared out;
/// with `Remainder::kUneven` each counts exactly once. A rank may have none.
/// Afterwards the model is in the mode it was in.
/// **Collective**, once at the end.
Evaluation evaluate_classifier(
    ParallelModule& model,
    BatchSource& source,
    const ScoreFunction& scores);

} // namespace tandem::train
