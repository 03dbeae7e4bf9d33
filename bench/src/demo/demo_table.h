#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// The demo's table, a line for each row: strategy, loss, accuracy, speed, the
/// speed against single at one thread and at all cores (where such rows are
/// there), memory of all processes.
std::string demo_table(const std::vector<train::ResultRow>& rows);

} // namespace tandem::bench
