#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// The training step whose loss is shown: early, while float's rounding has not
/// yet driven the trainings apart.
inline constexpr int64_t kDemoEarlyStep = 10;

/// The demo's table, a line for each row: strategy, loss at an early step and
/// on the test set, accuracy, speed, the ratio of speeds to single at one
/// thread and at all cores (where such rows are there), memory of all
/// processes.
std::string demo_table(const std::vector<train::ResultRow>& rows);

} // namespace tandem::bench
