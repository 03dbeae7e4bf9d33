#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::bench {

/// How often everything is timed.
struct TurnPlan {
  /// Untimed steps of a mode before its first timed one.
  int64_t warm_up_steps = 5;
  /// Timed steps of a mode, altogether.
  int64_t steps = 50;
  /// Timed steps of a mode before the next mode's turn.
  int64_t steps_per_turn = 5;
};

/// One mode runs, the others wait.
struct Turn {
  size_t mode = 0;
  int64_t untimed_steps = 0;
  int64_t timed_steps = 0;

  bool operator==(const Turn&) const = default;
};

/// The modes in turns, A B A B ..., so that whatever else the machine does
/// meets them all alike. Turns after the first begin with one untimed step:
/// a worker that has waited finds its data out of the caches.
std::vector<Turn> plan_turns(size_t num_modes, const TurnPlan& plan);

} // namespace tandem::bench
