#include <tandem/train/trainer.h>

#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/core/single_device.h>

#include "checks.h"
#include "tandem_catch.h"
#include "tensor_batches.h"

namespace {

using tandem::ConfigError;
using tandem::SingleDevice;
using tandem::train::Batch;
using tandem::train::SchedulerUnit;
using tandem::train::Trainer;
using tandem::train::TrainerOptions;
using tandem::train::TrainingLog;
using tandem::train::test::error_of;
using tandem::train::test::nearly_equal;
using tandem::train::test::TensorBatches;

/// A linear regression in double precision with everything that a trainer
/// takes; the same start and data every time.
struct Regression {
  explicit Regression(int64_t rows = 10) {
    torch::manual_seed(7);
    net = torch::nn::Linear(3, 2);
    net->to(torch::kDouble);
    data = torch::randn({rows, 3}, torch::kDouble);
    target = torch::randn({rows, 2}, torch::kDouble);
    model = SingleDevice(net);
    optimizer = std::make_unique<torch::optim::SGD>(
        model->parameters(),
        torch::optim::SGDOptions(0.1).momentum(0.9));
  }

  torch::Tensor loss(const Batch& batch) {
    return torch::mse_loss(model(batch.data), batch.target);
  }

  TrainingLog fit(TensorBatches& batches, const TrainerOptions& options) {
    Trainer trainer(
        *model,
        *optimizer,
        [this](const Batch& batch) { return loss(batch); },
        TrainerOptions(options).progress(false));
    return trainer.fit(batches);
  }

  TrainingLog fit(int64_t batch_rows, const TrainerOptions& options) {
    TensorBatches batches(data, target, batch_rows);
    return fit(batches, options);
  }

  torch::nn::Linear net{nullptr};
  torch::Tensor data;
  torch::Tensor target;
  SingleDevice<torch::nn::LinearImpl> model{nullptr};
  std::unique_ptr<torch::optim::SGD> optimizer;
};

std::vector<int64_t> logged_steps(const TrainingLog& log) {
  std::vector<int64_t> steps;
  for (const auto& entry : log.losses) {
    steps.push_back(entry.step);
  }
  return steps;
}

/// Divides the learning rate by ten at each step.
class Tenth : public torch::optim::LRScheduler {
 public:
  using LRScheduler::LRScheduler;

 protected:
  std::vector<double> get_lrs() override {
    auto rates = get_current_lrs();
    for (auto& rate : rates) {
      rate /= 10;
    }
    return rates;
  }
};

double learning_rate(const torch::optim::SGD& optimizer) {
  return optimizer.param_groups().at(0).options().get_lr();
}

} // namespace

TEST_CASE(
    "a trainer does to the bit what a loop written by hand does",
    "[train]") {
  Regression trained;
  const auto log =
      trained.fit(4, TrainerOptions().epochs(2).log_every_steps(1));

  Regression by_hand;
  std::vector<double> losses;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& [begin, end] :
         std::vector<std::pair<int, int>>{{0, 4}, {4, 8}, {8, 10}}) {
      by_hand.optimizer->zero_grad();
      const auto loss = torch::mse_loss(
          by_hand.net(by_hand.data.slice(0, begin, end)),
          by_hand.target.slice(0, begin, end));
      loss.backward();
      by_hand.optimizer->step();
      losses.push_back(loss.item<double>());
    }
  }
  CHECK(trained.net->weight.equal(by_hand.net->weight));
  CHECK(trained.net->bias.equal(by_hand.net->bias));
  REQUIRE(log.losses.size() == losses.size());
  for (size_t i = 0; i < losses.size(); ++i) {
    CHECK(nearly_equal(log.losses[i].loss, losses[i]));
  }
  CHECK(log.steps == 6);
  CHECK(log.epochs_finished == 2);
  CHECK(log.num_samples == 20);
  CHECK(log.step_ms.size() == 6);
  CHECK(log.seconds > 0);
}

TEST_CASE(
    "accumulated batches make the step of one large batch, uneven or not",
    "[train]") {
  Regression accumulated;
  const auto log = accumulated.fit(
      4,
      TrainerOptions().epochs(2).accumulation(3).log_every_steps(1));
  Regression whole;
  const auto whole_log =
      whole.fit(10, TrainerOptions().epochs(2).log_every_steps(1));
  CHECK(accumulated.net->weight.allclose(whole.net->weight, 1e-12, 1e-12));
  CHECK(log.steps == 2);
  CHECK(log.num_samples == 20);
  for (size_t i = 0; i < 2; ++i) {
    CHECK(nearly_equal(log.losses[i].loss, whole_log.losses[i].loss));
  }
}

TEST_CASE(
    "gradients are synchronised in the last batch of a step only",
    "[train]") {
  Regression regression;
  std::vector<bool> synchronised;
  TensorBatches batches(regression.data, regression.target, 2);
  Trainer trainer(
      *regression.model,
      *regression.optimizer,
      [&](const Batch& batch) {
        synchronised.push_back(regression.model->gradient_sync());
        return regression.loss(batch);
      },
      TrainerOptions().epochs(1).accumulation(3).progress(false));
  trainer.fit(batches);
  CHECK(synchronised == std::vector<bool>{false, false, true, false, true});
  CHECK(regression.model->gradient_sync());
}

TEST_CASE(
    "training ends by steps or epochs, whichever comes first",
    "[train]") {
  Regression regression;
  TensorBatches batches(regression.data, regression.target, 4);
  const auto by_steps = regression.fit(batches, TrainerOptions().steps(7));
  CHECK(by_steps.steps == 7);
  CHECK(by_steps.epochs_finished == 2);
  CHECK(batches.epochs == std::vector<uint64_t>{0, 1, 2});
  const auto both =
      regression.fit(batches, TrainerOptions().steps(7).epochs(1));
  CHECK(both.steps == 3);
  CHECK(both.epochs_finished == 1);
}

TEST_CASE("the loss is recorded first, every so often and last", "[train]") {
  Regression regression;
  const auto options = TrainerOptions().steps(8);
  CHECK(
      logged_steps(
          regression.fit(2, TrainerOptions(options).log_every_steps(3))) ==
      std::vector<int64_t>{1, 3, 6, 8});
  CHECK(
      logged_steps(
          regression.fit(2, TrainerOptions(options).log_every_steps(4))) ==
      std::vector<int64_t>{1, 4, 8});
}

TEST_CASE("a schedule advances by steps or by epochs", "[train]") {
  for (const auto unit : {SchedulerUnit::kStep, SchedulerUnit::kEpoch}) {
    Regression regression;
    const auto scheduler = std::make_shared<Tenth>(*regression.optimizer);
    regression.fit(
        4,
        TrainerOptions().steps(4).scheduler(scheduler).scheduler_unit(unit));
    // Four steps; one whole epoch of three and a part.
    const double expected = unit == SchedulerUnit::kStep ? 1e-5 : 1e-2;
    CHECK(nearly_equal(learning_rate(*regression.optimizer), expected));
  }
}

TEST_CASE("a trainer puts the model into train mode", "[train]") {
  Regression regression;
  regression.model->eval();
  regression.fit(4, TrainerOptions().steps(1));
  CHECK(regression.model->is_training());
}

TEST_CASE("a trainer refuses numbers that make no sense", "[train]") {
  Regression regression;
  const auto error = [&](const TrainerOptions& options) {
    return error_of<ConfigError>([&] { regression.fit(4, options); });
  };
  CHECK(error(TrainerOptions()).find("epochs, steps") != std::string::npos);
  CHECK(
      error(TrainerOptions().epochs(0)).find("epochs: expected at least 1") !=
      std::string::npos);
  CHECK(error(TrainerOptions().steps(-1)).find("steps") != std::string::npos);
  CHECK(
      error(TrainerOptions().steps(1).accumulation(0)).find("accumulation") !=
      std::string::npos);
  CHECK(
      error(TrainerOptions().steps(1).log_every_steps(0))
          .find("log_every_steps") != std::string::npos);
  Regression empty(0);
  CHECK_THROWS_AS(empty.fit(4, TrainerOptions().steps(1)), ConfigError);
}
