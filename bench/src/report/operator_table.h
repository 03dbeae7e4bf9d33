#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// The rows of `measure_operators`, a line for each pair: the medians on the
/// CPU and on a simulated device, and what the latter costs more.
std::string operator_table(const std::vector<train::ResultRow>& rows);

} // namespace tandem::bench
