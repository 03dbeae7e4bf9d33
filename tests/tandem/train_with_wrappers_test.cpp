// The trainer drives every wrapper, and what it reports is the same.
#include <vector>

#include <torch/torch.h>

#include <tandem/testing/rank_threads.h>
#include <tandem/train/evaluation.h>
#include <tandem/train/image_data_set.h>
#include <tandem/train/prefetched_batches.h>
#include <tandem/train/trainer.h>
#include <tandem/wrap.h>

#include "tandem_catch.h"

namespace {

using tandem::DataParallelOptions;
using tandem::Parallel;
using tandem::Strategy;
using tandem::WrapOptions;
using tandem::train::Batch;
using tandem::train::Evaluation;
using tandem::train::ImageDataSet;
using tandem::train::PrefetchedBatches;
using tandem::train::PrefetchOptions;
using tandem::train::Remainder;
using tandem::train::ShardedSampler;
using tandem::train::ShardedSamplerOptions;
using tandem::train::Trainer;
using tandem::train::TrainerOptions;

constexpr int64_t kNumImages = 48;
constexpr int64_t kGlobalBatch = 12;

/// The same images, classes and model in every thread: no generator is drawn
/// from.
ImageDataSet images() {
  const auto pixels = torch::arange(kNumImages * 16).mul(37).remainder(251);
  return {
      pixels.view({kNumImages, 1, 4, 4}).to(torch::kByte),
      torch::arange(kNumImages).remainder(4),
      {0.5, 0.25}};
}

class MlpImpl : public torch::nn::Cloneable<MlpImpl> {
 public:
  MlpImpl() {
    reset();
  }
  void reset() override {
    hidden = register_module("hidden", torch::nn::Linear(16, 10));
    scores = register_module("scores", torch::nn::Linear(10, 4));
    const torch::NoGradGuard no_grad;
    for (auto& parameter : parameters()) {
      parameter.copy_(torch::arange(parameter.numel())
                          .sin()
                          .mul(0.3)
                          .view(parameter.sizes()));
    }
  }
  torch::Tensor forward(const torch::Tensor& input) {
    return scores(torch::relu(hidden(input.flatten(1))));
  }

  torch::nn::Linear hidden{nullptr};
  torch::nn::Linear scores{nullptr};
};

struct Outcome {
  std::vector<double> losses;
  Evaluation evaluation;
};

ShardedSamplerOptions share_of(const Parallel<MlpImpl>& model) {
  return {model.rank(), model.world_size()};
}

Outcome train_with(const WrapOptions& options, int64_t accumulation = 1) {
  const auto model = tandem::wrap(std::make_shared<MlpImpl>(), options);
  const auto rows =
      static_cast<size_t>(kGlobalBatch / model->world_size() / accumulation);
  PrefetchedBatches batches(
      images(),
      ShardedSampler(kNumImages, share_of(*model).seed(1)),
      PrefetchOptions(rows));
  torch::optim::SGD optimizer(
      model->parameters(),
      torch::optim::SGDOptions(0.1).momentum(0.9));
  Trainer trainer(
      *model,
      optimizer,
      [&](const Batch& batch) {
        return torch::nn::functional::cross_entropy(
            model->forward(batch.data),
            batch.target);
      },
      TrainerOptions()
          .epochs(3)
          .accumulation(accumulation)
          .log_every_steps(1)
          .progress(false));
  Outcome outcome;
  for (const auto& [step, loss] : trainer.fit(batches).losses) {
    outcome.losses.push_back(loss);
  }
  // 48 images over 5 ranks: 10, 10, 10, 9, 9.
  PrefetchedBatches test(
      images(),
      ShardedSampler(
          kNumImages,
          share_of(*model).remainder(Remainder::kUneven)),
      PrefetchOptions(7));
  outcome.evaluation =
      tandem::train::evaluate_classifier(*model, test, [&](const Batch& batch) {
        return model->forward(batch.data);
      });
  return outcome;
}

WrapOptions two_cpu_replicas() {
  return WrapOptions(Strategy::kDP)
      .dp(DataParallelOptions().devices({at::kCPU, at::kCPU}));
}

void check_same(const Outcome& outcome, const Outcome& expected) {
  REQUIRE(outcome.losses.size() == expected.losses.size());
  for (size_t i = 0; i < expected.losses.size(); ++i) {
    CHECK(std::abs(outcome.losses[i] - expected.losses[i]) < 5e-5);
  }
  CHECK(outcome.evaluation.num_samples == kNumImages);
  CHECK(std::abs(outcome.evaluation.loss - expected.evaluation.loss) < 5e-5);
  CHECK(outcome.evaluation.accuracy == expected.evaluation.accuracy);
}

/// Scores that make the loss and accuracy of each image known: image i is right
/// if i is even.
torch::Tensor known_scores(const torch::Tensor& index) {
  return torch::one_hot(index.remainder(2), 2).to(torch::kDouble) *
      index.view({-1, 1});
}

} // namespace

TEST_CASE(
    "the same trainer gives the same losses with every wrapper",
    "[tandem][TR-08]") {
  const auto expected = train_with(Strategy::kSingle);
  CHECK(expected.losses.size() == 12);
  CHECK(expected.losses.back() < expected.losses.front());
  check_same(train_with(two_cpu_replicas()), expected);
  for (const int64_t world_size : {1, 2, 3}) {
    for (const auto& outcome : tandem::testing::run_ranks(
             world_size,
             [](auto&) { return train_with(Strategy::kDDP); })) {
      check_same(outcome, expected);
    }
  }
}

TEST_CASE(
    "accumulated steps give the same losses with every wrapper",
    "[tandem][TR-08]") {
  const auto expected = train_with(Strategy::kSingle);
  check_same(train_with(Strategy::kSingle, 3), expected);
  check_same(train_with(two_cpu_replicas(), 3), expected);
  for (const auto& outcome : tandem::testing::run_ranks(2, [](auto&) {
         return train_with(Strategy::kDDP, 3);
       })) {
    check_same(outcome, expected);
  }
}

TEST_CASE(
    "evaluation weighs samples, not ranks, when their counts differ",
    "[tandem][TR-07]") {
  // Rank r holds samples r, r + 5, ...: of 7, two ranks have two, three have
  // one; with 3 samples two ranks have none.
  for (const int64_t num_samples : {7, 3}) {
    double loss = 0;
    double correct = 0;
    for (int64_t i = 0; i < num_samples; ++i) {
      const auto value = static_cast<double>(i);
      loss += std::log(1 + std::exp(i % 2 == 0 ? -value : value));
      correct += i % 2 == 0 ? 1 : 0;
    }
    const auto evaluations = tandem::testing::run_ranks(5, [&](auto& context) {
      const auto model =
          tandem::wrap(std::make_shared<MlpImpl>(), Strategy::kDDP);
      PrefetchedBatches samples(
          [](c10::ArrayRef<size_t> rows) {
            const std::vector<int64_t> index(rows.begin(), rows.end());
            return Batch(
                torch::tensor(index),
                torch::zeros(
                    {static_cast<int64_t>(rows.size())},
                    torch::kLong));
          },
          ShardedSampler(
              static_cast<size_t>(num_samples),
              ShardedSamplerOptions(context.rank(), 5)
                  .remainder(Remainder::kUneven)
                  .shuffle(false)),
          PrefetchOptions(1));
      return tandem::train::evaluate_classifier(
          *model,
          samples,
          [](const Batch& batch) { return known_scores(batch.data); });
    });
    const auto count = static_cast<double>(num_samples);
    for (const auto& evaluation : evaluations) {
      CHECK(evaluation.num_samples == num_samples);
      CHECK(std::abs(evaluation.loss - loss / count) < 1e-10);
      CHECK(std::abs(evaluation.accuracy - correct / count) < 1e-10);
    }
  }
}
