#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/arg.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <tandem/core/parallel_module.h>
#include <tandem/train/batch_source.h>

namespace tandem::train {

/// The mean loss of a batch, over its rows. The batch is on the wrapper's
/// device; the function captures the typed wrapper and calls it.
using LossFunction = std::function<at::Tensor(const Batch&)>;

/// When a learning-rate schedule advances.
enum class SchedulerUnit { kStep, kEpoch };

/// Training ends after `epochs` or `steps`, whichever comes first.
struct TrainerOptions {
  /// Times that the source is read from its beginning.
  TORCH_ARG(std::optional<int64_t>, epochs);
  /// Optimizer steps.
  TORCH_ARG(std::optional<int64_t>, steps);
  /// Batches whose gradients make one optimizer step. All but the last run
  /// under `no_sync`, and each counts by its rows, so the step equals that on
  /// one large batch. The last step of an epoch may have fewer batches.
  TORCH_ARG(int64_t, accumulation) = 1;
  /// The loss is recorded at step 1, at every multiple of this and at the last
  /// step. Each record is a small all-reduce and, on a GPU, waits for the step.
  TORCH_ARG(int64_t, log_every_steps) = 10;
  /// Learning-rate schedule over the optimizer given; none by default.
  TORCH_ARG(std::shared_ptr<torch::optim::LRScheduler>, scheduler);
  TORCH_ARG(SchedulerUnit, scheduler_unit) = SchedulerUnit::kStep;
  /// Ranks may have different numbers of batches in all: one that has none left
  /// takes part in the others' steps until the end of training, as
  /// `ParallelModule::uneven_inputs` does. Recorded losses are then this rank's
  /// own. An epoch is each rank's own, too.
  TORCH_ARG(bool, uneven_inputs) = false;
  /// Progress on stderr, from rank 0 only.
  TORCH_ARG(bool, progress) = true;
};

struct LoggedLoss {
  /// From 1.
  int64_t step = 0;
  /// Mean over the rows of all ranks.
  double loss = 0;
};

/// What `Trainer::fit` did.
struct TrainingLog {
  int64_t steps = 0;
  int64_t epochs_finished = 0;
  /// Rows of all ranks.
  int64_t num_samples = 0;
  /// From the first batch asked for to the last step's loss at hand.
  double seconds = 0;
  /// Of each step in this process, waiting for its batches included. On a GPU:
  /// until the work was queued, but for the steps whose loss was recorded.
  std::vector<double> step_ms;
  std::vector<LoggedLoss> losses;
};

/// The training loop, the same for every strategy: it drives a wrapper through
/// `ParallelModule&` and a closure that returns the loss.
///
/// Model, optimizer and source outlive it and stay the caller's.
/// **Threads**: one, the caller's.
///
/// Example:
/// ```cpp
/// tandem::train::Trainer trainer(
///     *model,
///     optimizer,
///     [&](const tandem::train::Batch& batch) {
///       return torch::nn::functional::cross_entropy(
///           model(batch.data), batch.target);
///     },
///     tandem::train::TrainerOptions().epochs(10));
/// trainer.fit(batches);
/// ```
class Trainer {
 public:
  /// **Throws** `ConfigError` if neither epochs nor steps are given, or a
  /// number is out of range.
  Trainer(
      ParallelModule& model,
      torch::optim::Optimizer& optimizer,
      LossFunction loss,
      TrainerOptions options);

  /// Trains in train mode; a second call trains on, from epoch 0 of `source`.
  /// **Collective**: every rank, with sources of equally many batches of equal
  /// sizes, unless the option `uneven_inputs` is on.
  /// **Throws** `ConfigError` if an epoch of `source` has no batch.
  TrainingLog fit(BatchSource& source);

 private:
  ParallelModule& model_;
  torch::optim::Optimizer& optimizer_;
  LossFunction loss_;
  TrainerOptions options_;
};

} // namespace tandem::train
