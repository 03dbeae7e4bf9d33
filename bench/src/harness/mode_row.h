#pragma once

#include <vector>

#include <tandem/train/results.h>

#include "harness/bench_recipe.h"
#include "harness/messages.h"
#include "harness/mode.h"

namespace tandem::bench {

/// What a mode is called in messages and in the results, its row's name.
std::string mode_name(const Mode& mode, const BenchRecipe& recipe);

/// The row of a mode from what its workers said before the first turn.
train::ResultRow make_mode_row(
    const Mode& mode,
    const BenchRecipe& recipe,
    const std::vector<ReadyReport>& reports);

/// Adds one turn, as reported by all workers. A step's time is the mean over
/// the workers; bytes and counters are those since the workers were made.
void add_turn(const std::vector<TurnReport>& reports, train::ResultRow& row);

/// Rows of a step over its median time. Call it after the last turn.
void set_samples_per_s(train::ResultRow& row);

} // namespace tandem::bench
