#include <tandem/train/evaluation.h>

#include <cmath>

#include <torch/torch.h>

#include <tandem/core/single_device.h>

#include "checks.h"
#include "tandem_catch.h"
#include "tensor_batches.h"

namespace {

using tandem::SingleDevice;
using tandem::train::Batch;
using tandem::train::evaluate_classifier;
using tandem::train::Evaluation;
using tandem::train::test::nearly_equal;
using tandem::train::test::TensorBatches;

Evaluation evaluate(torch::nn::Linear net, int64_t rows, int64_t batch_rows) {
  torch::manual_seed(3);
  const auto data = torch::randn({rows, 4}, torch::kDouble);
  const auto target = torch::arange(rows).remainder(3);
  SingleDevice model(net);
  TensorBatches batches(data, target, batch_rows);
  return evaluate_classifier(*model, batches, [&](const Batch& batch) {
    return model(batch.data);
  });
}

} // namespace

TEST_CASE(
    "evaluation in batches of any size gives the means over the samples",
    "[train]") {
  torch::manual_seed(1);
  torch::nn::Linear net(4, 3);
  net->to(torch::kDouble);
  const auto whole = evaluate(net, 10, 10);

  torch::manual_seed(3);
  const auto scores = net(torch::randn({10, 4}, torch::kDouble));
  const auto target = torch::arange(10).remainder(3);
  const auto loss =
      -torch::log_softmax(scores, 1).gather(1, target.unsqueeze(1)).mean();
  CHECK(nearly_equal(whole.loss, loss.item<double>()));
  CHECK(
      whole.accuracy ==
      scores.argmax(1).eq(target).to(torch::kDouble).mean().item<double>());
  for (const int64_t batch_rows : {1, 3, 4}) {
    const auto cut = evaluate(net, 10, batch_rows);
    CHECK(cut.num_samples == 10);
    CHECK(nearly_equal(cut.loss, whole.loss));
    CHECK(cut.accuracy == whole.accuracy);
  }
}

TEST_CASE("evaluation without samples gives no number", "[train]") {
  torch::nn::Linear net(4, 3);
  net->to(torch::kDouble);
  const auto none = evaluate(net, 0, 4);
  CHECK(none.num_samples == 0);
  CHECK(std::isnan(none.loss));
  CHECK(std::isnan(none.accuracy));
}

TEST_CASE(
    "evaluation is in eval mode, without gradients, and puts the mode back",
    "[train]") {
  torch::nn::Linear net(4, 3);
  SingleDevice model(net);
  TensorBatches batches(
      torch::zeros({2, 4}),
      torch::zeros({2}, torch::kLong),
      1);
  for (const bool training : {true, false}) {
    model->train(training);
    evaluate_classifier(*model, batches, [&](const Batch& batch) {
      CHECK_FALSE(net->is_training());
      auto scores = model(batch.data);
      CHECK_FALSE(scores.requires_grad());
      return scores;
    });
    CHECK(net->is_training() == training);
  }
  CHECK_THROWS_AS(
      evaluate_classifier(
          *model.ptr(),
          batches,
          [&](const Batch&) -> torch::Tensor {
            throw std::runtime_error("wonderful");
          }),
      std::runtime_error);
}
