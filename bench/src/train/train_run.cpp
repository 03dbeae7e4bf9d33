#include "train/train_run.h"

#include <algorithm>
#include <iostream>
#include <limits>

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <tandem/core/errors.h>
#include <tandem/train/evaluation.h>
#include <tandem/train/linear_decay.h>
#include <tandem/train/prefetched_batches.h>
#include <tandem/train/trainer.h>

#include "placement/peak_memory.h"

namespace tandem::bench {

namespace {

using Model = Parallel<ClassifierImpl>;

constexpr int64_t kNoStepLimit = std::numeric_limits<int64_t>::max();
// Of a process; more would not be faster.
constexpr size_t kEvaluationRows = 500;

// Rows of one process; every rank has the same number of them.
int64_t rows_per_process(const TrainRecipe& recipe, const Model& model) {
  if (recipe.batch < 1 || recipe.batch % model.world_size() != 0) {
    throw ConfigError(fmt::format(
        "--batch: expected a multiple of the {} workers, got {}",
        model.world_size(),
        recipe.batch));
  }
  return recipe.batch / model.world_size();
}

std::shared_ptr<Model> make_model(
    const WorkerScope& worker,
    const TrainRecipe& recipe) {
  torch::manual_seed(recipe.seed);
  Classifier net(recipe.model);
  net->to(worker.device());
  return wrap(net, worker.wrap_options());
}

// What the epochs and steps asked for come to.
int64_t num_planned_steps(
    const TrainRecipe& recipe,
    const train::BatchSource& batches) {
  return std::min(
      recipe.steps.value_or(kNoStepLimit),
      recipe.epochs ? *recipe.epochs * batches.batches_per_epoch()
                    : kNoStepLimit);
}

// Of replicas, after a training step.
void print_memory(
    const Model& model,
    const torch::optim::Optimizer& optimizer) {
  const auto* replicated =
      dynamic_cast<const DataParallelImpl<ClassifierImpl>*>(&model);
  if (replicated != nullptr) {
    std::cerr << replicated->memory_report(optimizer).text();
  }
}

train::TrainingLog train_model(
    Model& model,
    const train::ImageDataSet& data,
    const TrainRecipe& recipe) {
  const auto rows = static_cast<size_t>(rows_per_process(recipe, model));
  train::PrefetchedBatches batches(
      data,
      train::ShardedSampler(
          data.size().value(),
          train::ShardedSamplerOptions(model.rank(), model.world_size())
              .seed(recipe.seed)),
      train::PrefetchOptions(rows));
  torch::optim::SGD optimizer(
      model.parameters(),
      torch::optim::SGDOptions(recipe.learning_rate).momentum(0.9));
  auto options =
      train::TrainerOptions().epochs(recipe.epochs).steps(recipe.steps);
  if (recipe.decay) {
    options.scheduler(std::make_shared<train::LinearDecay>(
        optimizer,
        num_planned_steps(recipe, batches)));
  }
  train::Trainer trainer(
      model,
      optimizer,
      [&](const train::Batch& batch) {
        return at::cross_entropy_loss(model.forward(batch.data), batch.target);
      },
      options);
  if (model.rank() == 0) {
    std::cerr << model.describe() << '\n';
  }
  auto log = trainer.fit(batches);
  print_memory(model, optimizer);
  return log;
}

train::Evaluation evaluate_model(
    Model& model,
    const train::ImageDataSet& data) {
  train::PrefetchedBatches batches(
      data,
      train::ShardedSampler(
          data.size().value(),
          train::ShardedSamplerOptions(model.rank(), model.world_size())
              .shuffle(false)
              .remainder(train::Remainder::kUneven)),
      train::PrefetchOptions(kEvaluationRows));
  return train::evaluate_classifier(
      model,
      batches,
      [&](const train::Batch& batch) { return model.forward(batch.data); });
}

// Of all ranks' devices, in order of ranks; every rank has as many.
std::vector<int64_t> all_peak_bytes(const WorkerScope& worker, Model& model) {
  const auto own = peak_bytes(worker);
  const auto num_own = static_cast<int64_t>(own.size());
  auto peaks = at::zeros({model.world_size() * num_own}, at::kLong);
  peaks.narrow(0, model.rank() * num_own, num_own)
      .copy_(at::tensor(own, at::kLong));
  model.all_reduce_sum_(peaks);
  const auto* values = peaks.data_ptr<int64_t>();
  return {values, values + peaks.numel()};
}

train::ResultRow describe_run(
    const WorkerScope& worker,
    const TrainRecipe& recipe) {
  train::ResultRow row;
  row.workload = architecture_name(recipe.model);
  row.strategy = strategy_name(worker.strategy());
  row.device = at::Device(worker.device().type()).str();
  row.backend = worker.backend();
  row.workers = worker.workers();
  row.threads_per_worker = worker.threads();
  row.batch = recipe.batch;
  return row;
}

} // namespace

train::ResultRow run_training(
    const WorkerScope& worker,
    const TrainRecipe& recipe) {
  auto row = describe_run(worker, recipe);
  const auto model = make_model(worker, recipe);
  const auto data = load_image_data(recipe.data);
  const auto log = train_model(*model, data.train, recipe);
  row.steps_run = log.steps;
  row.step_ms = log.step_ms;
  row.losses = log.losses;
  row.samples_per_s = static_cast<double>(log.num_samples) / log.seconds;
  row.counters = model->counters();
  const auto evaluation = evaluate_model(*model, data.test);
  row.test_loss = evaluation.loss;
  row.test_accuracy = evaluation.accuracy;
  row.peak_bytes = all_peak_bytes(worker, *model);
  return row;
}

} // namespace tandem::bench
