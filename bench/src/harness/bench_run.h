#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <tandem/train/results.h>

#include "commands.h"
#include "harness/bench_recipe.h"
#include "harness/mode.h"
#include "harness/turns.h"

namespace tandem::bench {

/// What a run consists of.
struct BenchPlan {
  std::vector<Mode> modes;
  BenchRecipe recipe;
  TurnPlan turns;
  /// The arguments that make this program the workers of the mode with that
  /// index, which talk to the coordinator at `port`.
  std::function<CommandLine(const Mode& mode, int64_t index, int64_t port)>
      worker_arguments;
};

/// Starts and verifies every mode, then times them in turns; a row for each, in
/// order. Progress goes to stderr.
/// **Throws** `VerificationError` if a mode is not what it should be; nothing
/// has been timed then. `Error` if workers fail.
std::vector<train::ResultRow> run_modes(const BenchPlan& plan);

} // namespace tandem::bench
