#include "harness/mode.h"

#include <tandem/core/errors.h>

#include "harness/messages.h"
#include "tandem_catch.h"

using tandem::bench::Activity;
using tandem::bench::placement_of;
using tandem::bench::TimedStrategy;

namespace {

/// "dp/refresh/2/1" for strategy, activity, workers and threads of a mode.
std::string planned(
    const std::vector<TimedStrategy>& strategies,
    const std::vector<Activity>& activities,
    int64_t workers,
    int64_t threads,
    bool single_at_all_threads) {
  std::string text;
  for (const auto& mode : tandem::bench::plan_modes(
           strategies,
           activities,
           workers,
           threads,
           single_at_all_threads)) {
    text += " " + timed_strategy_name(mode.strategy) + "/" +
        activity_name(mode.activity) + "/" + std::to_string(mode.workers) +
        "/" + std::to_string(mode.threads);
  }
  return text;
}

} // namespace

TEST_CASE("single is timed at one thread and at all workers'", "[bench]") {
  const std::vector<Activity> train{Activity::kTrain};
  CHECK(
      planned(
          {TimedStrategy::kSingle, TimedStrategy::kDDPNoSync},
          train,
          3,
          2,
          true) == " single/train/1/1 single/train/1/6 ddp-nosync/train/3/2");
  CHECK(
      planned({TimedStrategy::kSingle}, train, 3, 1, false) ==
      " single/train/1/1");
  CHECK(
      planned({TimedStrategy::kSingle}, train, 1, 1, true) ==
      " single/train/1/1");
}

TEST_CASE("a mode is left out where it makes no sense", "[bench]") {
  CHECK(
      planned(
          {TimedStrategy::kBare, TimedStrategy::kDP},
          {Activity::kMeanLoss, Activity::kRefresh, Activity::kCopyEach},
          2,
          1,
          true) == " dp/mean-loss/2/1 dp/refresh/2/1 dp/copy-each/2/1");
}

TEST_CASE(
    "workers that never talk are ranks that stay by themselves",
    "[bench]") {
  const auto placement =
      placement_of({TimedStrategy::kDDPNoSync, Activity::kTrain, 2, 1}, {});
  CHECK(placement.strategy == tandem::Strategy::kDDP);
  CHECK(placement.independent);
  CHECK_FALSE(placement_of({TimedStrategy::kDDP, Activity::kTrain, 2, 1}, {})
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
  const auto ready = from_text<ReadyReport>(
      to_text(ReadyReport{{1e-16, "step 1: 'w'"}, 4, 480, "sim", "gloo"}));
  CHECK(ready.verification.max_abs_diff == 1e-16);
  CHECK(ready.verification.first_mismatch == "step 1: 'w'");
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
