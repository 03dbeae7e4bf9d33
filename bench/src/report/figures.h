#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// What the rows of a run say together, a line each beginning with "# ", for
/// what was timed in it: the cost of a wrapper on one device, a refresh against
/// copies one by one, bytes that an evaluation sends, the first device's peak
/// against the others'.
std::string figure_lines(const std::vector<train::ResultRow>& rows);

} // namespace tandem::bench
