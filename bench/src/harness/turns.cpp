#include "harness/turns.h"

#include <algorithm>

namespace tandem::bench {

std::vector<Turn> plan_turns(size_t num_modes, const TurnPlan& plan) {
  std::vector<Turn> turns;
  for (int64_t done = 0; done < plan.steps; done += plan.steps_per_turn) {
    const int64_t untimed = done == 0 ? plan.warm_up_steps : 1;
    const int64_t timed = std::min(plan.steps_per_turn, plan.steps - done);
    for (size_t mode = 0; mode < num_modes; ++mode) {
      turns.push_back({mode, untimed, timed});
    }
  }
  return turns;
}

} // namespace tandem::bench
