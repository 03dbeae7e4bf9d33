#include <tandem/train/trainer.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <memory>
#include <utility>

#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/train/progress.h>

#include "batch_to_device.h"

namespace tandem::train {

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

void require_positive(const char* name, std::optional<int64_t> value) {
  if (value && *value < 1) {
    throw ConfigError(
        fmt::format("Trainer: {}: expected at least 1, got {}", name, *value));
  }
}

TrainerOptions checked_trainer(TrainerOptions options) {
  if (!options.epochs() && !options.steps()) {
    throw ConfigError(
        "Trainer: epochs, steps: expected at least one of them, got neither");
  }
  require_positive("epochs", options.epochs());
  require_positive("steps", options.steps());
  require_positive("accumulation", options.accumulation());
  require_positive("log_every_steps", options.log_every_steps());
  return options;
}

int64_t total_rows(const std::vector<Batch>& group) {
  int64_t rows = 0;
  for (const auto& batch : group) {
    rows += batch.data.size(0);
  }
  return rows;
}

/// One call of `Trainer::fit`.
class Fit {
 public:
  Fit(ParallelModule& model,
      torch::optim::Optimizer& optimizer,
      const LossFunction& loss,
      const TrainerOptions& options)
      : model_(model), optimizer_(optimizer), loss_(loss), options_(options) {
    if (options.progress() && model.rank() == 0) {
      progress_.emplace(std::cerr, stderr_progress());
    }
  }

  TrainingLog run(BatchSource& source) {
    planned_steps_ = plan_steps(source);
    model_.train();
    if (options_.uneven_inputs()) {
      uneven_inputs_ = model_.uneven_inputs();
    }
    while (!finished()) {
      epoch_ = log_.epochs_finished + 1;
      source.start_epoch(static_cast<uint64_t>(log_.epochs_finished));
      run_epoch(source);
    }
    if (log_.losses.back().step != log_.steps) {
      record_loss();
    }
    if (uneven_inputs_) {
      uneven_inputs_->finish();
      add_up_samples();
    }
    log_.seconds = seconds_so_far();
    if (progress_) {
      progress_->finish(progress_state());
    }
    return std::move(log_);
  }

 private:
  int64_t plan_steps(const BatchSource& source) const {
    const int64_t group = options_.accumulation();
    const int64_t per_epoch = (source.batches_per_epoch() + group - 1) / group;
    if (per_epoch == 0) {
      throw ConfigError(
          "Trainer: batches of an epoch: expected at least 1, got 0");
    }
    return std::min(
        options_.steps().value_or(kNoLimit),
        options_.epochs() ? *options_.epochs() * per_epoch : kNoLimit);
  }

  bool steps_are_done() const {
    return log_.steps >= options_.steps().value_or(log_.steps + 1);
  }

  bool finished() const {
    return steps_are_done() ||
        log_.epochs_finished >=
        options_.epochs().value_or(log_.epochs_finished + 1);
  }

  void run_epoch(BatchSource& source) {
    while (!steps_are_done()) {
      const auto begin = SteadyClock::now();
      const auto group = next_group(source);
      if (group.empty()) {
        ++log_.epochs_finished;
        advance(SchedulerUnit::kEpoch);
        return;
      }
      step(group);
      advance(SchedulerUnit::kStep);
      finish_step(begin);
    }
  }

  /// The batches of the next step; none at the end of the epoch.
  std::vector<Batch> next_group(BatchSource& source) const {
    std::vector<Batch> group;
    while (std::cmp_less(group.size(), options_.accumulation())) {
      auto batch = source.next();
      if (!batch) {
        break;
      }
      group.push_back(to_device(*batch, model_.device()));
    }
    return group;
  }

  void step(const std::vector<Batch>& group) {
    optimizer_.zero_grad();
    last_rows_ = total_rows(group);
    last_loss_ = at::Tensor();
    for (size_t i = 0; i < group.size(); ++i) {
      std::optional<NoSyncGuard> no_sync;
      if (i + 1 < group.size()) {
        no_sync.emplace(model_.no_sync());
      }
      auto loss = loss_(group[i]);
      if (group.size() > 1) {
        loss = loss *
            (static_cast<double>(group[i].data.size(0)) /
             static_cast<double>(last_rows_));
      }
      loss.backward();
      last_loss_ =
          last_loss_.defined() ? last_loss_ + loss.detach() : loss.detach();
    }
    optimizer_.step();
    ++log_.steps;
    log_.num_samples +=
        uneven_inputs_ ? last_rows_ : last_rows_ * model_.world_size();
  }

  void advance(SchedulerUnit unit) {
    if (options_.scheduler() && options_.scheduler_unit() == unit) {
      options_.scheduler()->step();
    }
  }

  void finish_step(SteadyClock::time_point begin) {
    if (log_.steps == 1 || log_.steps % options_.log_every_steps() == 0) {
      record_loss();
    }
    const std::chrono::duration<double, std::milli> took =
        SteadyClock::now() - begin;
    log_.step_ms.push_back(took.count());
    if (progress_) {
      progress_->update(progress_state());
    }
  }

  void record_loss() {
    const auto rows = static_cast<double>(last_rows_);
    auto sums = at::tensor(
        {last_loss_.item<double>() * rows, rows},
        at::kDouble); // [2]
    if (!uneven_inputs_) {
      model_.all_reduce_sum_(sums);
    }
    log_.losses.push_back(
        {log_.steps, sums[0].item<double>() / sums[1].item<double>()});
  }

  /// Of all ranks, from each one's own.
  void add_up_samples() {
    auto sum = at::tensor({log_.num_samples}, at::kLong); // [1]
    model_.all_reduce_sum_(sum);
    log_.num_samples = sum.item<int64_t>();
  }

  double seconds_so_far() const {
    return std::chrono::duration<double>(SteadyClock::now() - start_).count();
  }

  ProgressState progress_state() const {
    ProgressState state;
    state.step = log_.steps;
    if (planned_steps_ < kNoLimit) {
      state.num_steps = planned_steps_;
    }
    state.epoch = epoch_;
    state.num_samples = log_.num_samples;
    state.seconds = seconds_so_far();
    state.loss = log_.losses.back().loss;
    return state;
  }

  ParallelModule& model_;
  torch::optim::Optimizer& optimizer_;
  const LossFunction& loss_;
  const TrainerOptions& options_;
  std::optional<Progress> progress_;
  SteadyClock::time_point start_ = SteadyClock::now();
  std::unique_ptr<UnevenInputs> uneven_inputs_;
  int64_t planned_steps_ = 0;
  /// The one that runs, from 1.
  int64_t epoch_ = 1;
  TrainingLog log_;
  /// Loss and rows of the last step in this process.
  at::Tensor last_loss_;
  int64_t last_rows_ = 0;
};

} // namespace

Trainer::Trainer(
    ParallelModule& model,
    torch::optim::Optimizer& optimizer,
    LossFunction loss,
    TrainerOptions options)
    : model_(model),
      optimizer_(optimizer),
      loss_(std::move(loss)),
      options_(checked_trainer(std::move(options))) {}

TrainingLog Trainer::fit(BatchSource& source) {
  return Fit(model_, optimizer_, loss_, options_).run(source);
}

} // namespace tandem::train
