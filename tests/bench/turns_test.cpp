#include "harness/turns.h"

#include "tandem_catch.h"

using tandem::bench::TurnPlan;

namespace {

/// "0:7+2" for a turn of mode 0 with 7 untimed steps and 2 timed ones.
std::string planned(size_t num_modes, const TurnPlan& plan) {
  std::string text;
  for (const auto& turn : tandem::bench::plan_turns(num_modes, plan)) {
    text += " " + std::to_string(turn.mode) + ":" +
        std::to_string(turn.untimed_steps) + "+" +
        std::to_string(turn.timed_steps);
  }
  return text;
}

} // namespace

TEST_CASE("modes take turns in order, each warmed up once", "[bench][BN-02]") {
  CHECK(
      planned(3, {.warm_up_steps = 7, .steps = 5, .steps_per_turn = 2}) ==
      " 0:7+2 1:7+2 2:7+2 0:1+2 1:1+2 2:1+2 0:1+1 1:1+1 2:1+1");
}

TEST_CASE("a turn is no longer than the steps asked for", "[bench]") {
  CHECK(
      planned(1, {.warm_up_steps = 0, .steps = 3, .steps_per_turn = 10}) ==
      " 0:0+3");
}
