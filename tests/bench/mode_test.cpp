#include "harness/mode.h"

#include <cmath>

#include <tandem/core/errors.h>

#include "harness/messages.h"
#include "tandem_catch.h"

using tandem::bench::Activity;
using tandem::bench::ModeChoices;
using tandem::bench::placement_of;
using tandem::bench::TimedStrategy;

namespace {

/// "dp/refresh/2/1" for strategy, activity, workers and threads of a mode, and
/// its hook if it has one.
std::string planned(const ModeChoices& choices) {
  std::string text;
  for (const auto& mode : tandem::bench::plan_modes(choices)) {
    text += " " + timed_strategy_name(mode.strategy) + "/" +
        activity_name(mode.activity) + "/" + std::to_string(mode.workers) +
        "/" + std::to_string(mode.threads);
    if (!mode.hook.empty()) {
      text += "/" + mode.hook;
    }
  }
  return text;
}

ModeChoices training(std::vector<TimedStrategy> strategies, int64_t workers) {
  ModeChoices choices;
  choices.strategies = std::move(strategies);
  choices.activities = {Activity::kTrain};
  choices.workers = workers;
  return choices;
}

} // namespace

TEST_CASE("single is timed at one thread and at all workers'", "[bench]") {
  auto choices =
      training({TimedStrategy::kSingle, TimedStrategy::kDDPNoSync}, 3);
  choices.threads = 2;
  CHECK(
      planned(choices) ==
      " single/train/1/1 single/train/1/6 ddp-nosync/train/3/2");
  choices = training({TimedStrategy::kSingle}, 3);
  choices.single_at_all_threads = false;
  CHECK(planned(choices) == " single/train/1/1");
  CHECK(planned(training({TimedStrategy::kSingle}, 1)) == " single/train/1/1");
}

TEST_CASE("a mode is left out where it makes no sense", "[bench]") {
  auto choices = training({TimedStrategy::kBare, TimedStrategy::kDP}, 2);
  choices.activities = {
      Activity::kMeanLoss,
      Activity::kRefresh,
      Activity::kCopyEach};
  CHECK(
      planned(choices) == " dp/mean-loss/2/1 dp/refresh/2/1 dp/copy-each/2/1");
}

TEST_CASE("a ddp that trains is timed with each hook too", "[bench]") {
  auto choices = training({TimedStrategy::kDDP, TimedStrategy::kDDPNoSync}, 2);
  choices.activities = {Activity::kTrain, Activity::kEvaluate};
  choices.hooks = {"noop", "top_k"};
  CHECK(
      planned(choices) ==
      " ddp/train/2/1 ddp/train/2/1/noop ddp/train/2/1/top_k "
      "ddp/evaluate/2/1 ddp-nosync/train/2/1 ddp-nosync/evaluate/2/1");
}

TEST_CASE(
    "workers that never talk are ranks that stay by themselves",
    "[bench]") {
  const auto placement =
      placement_of({TimedStrategy::kDDPNoSync, Activity::kTrain, 2, 1, ""}, {});
  CHECK(placement.strategy == tandem::Strategy::kDDP);
  CHECK(placement.independent);
  CHECK_FALSE(
      placement_of({TimedStrategy::kDDP, Activity::kTrain, 2, 1, ""}, {})
          .independent);
}

TEST_CASE("names of strategies and activities are read back", "[bench]") {
  using namespace tandem::bench; // NOLINT(google-build-using-namespace)
  for (const auto& name : timed_strategy_names()) {
    CHECK(timed_strategy_name(timed_strategy_from_name(name)) == name);
  }
  for (const auto& name : activity_names()) {
    CHECK(activity_name(activity_from_name(name)) == name);
  }
  CHECK_THROWS_AS(timed_strategy_from_name("fsdp"), tandem::ConfigError);
  CHECK_THROWS_AS(activity_from_name("rest"), tandem::ConfigError);
}

TEST_CASE("what workers report is read as it was written", "[bench]") {
  using namespace tandem::bench; // NOLINT(google-build-using-namespace)
  const auto ready = from_text<ReadyReport>(to_text(
      ReadyReport{{1e-16, "step 1: 'w'"}, 0.5, 0.25, 4, 480, "sim", "gloo"}));
  CHECK(ready.verification.max_abs_diff == 1e-16);
  CHECK(ready.verification.first_mismatch == "step 1: 'w'");
  CHECK(ready.step_gradient_error == 0.5);
  CHECK(ready.summed_gradient_error == 0.25);
  CHECK(ready.rows == 4);
  CHECK(ready.flops == 480);
  CHECK(ready.device == "sim");
  CHECK(ready.backend == "gloo");
  const auto turn = from_text<TurnReport>(
      to_text(TurnReport{{1.5, 2.25}, 7, {100, 200}, 9, {1, 2, 3, 4}}));
  CHECK(turn.step_ms == std::vector<double>{1.5, 2.25});
  CHECK(turn.bytes_from_first_device == 7);
  CHECK(turn.peak_bytes == std::vector<int64_t>{100, 200});
  CHECK(turn.steps_run == 9);
  CHECK(turn.counters.copies == 4);
  CHECK(from_text<TurnOrder>(to_text(TurnOrder{3, 5})).timed_steps == 5);
}

TEST_CASE("a report without a number keeps what is wrong", "[bench][BN-01]") {
  using namespace tandem::bench; // NOLINT(google-build-using-namespace)
  ReadyReport report;
  report.verification.max_abs_diff = std::nan("");
  report.step_gradient_error = INFINITY;
  const auto read = from_text<ReadyReport>(to_text(report));
  CHECK(std::isnan(read.verification.max_abs_diff));
  CHECK_FALSE(std::isfinite(read.step_gradient_error));
}
