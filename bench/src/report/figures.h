#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// What the rows of a run say together, a line each beginning with "# ", for
/// what was timed in it: the cost of a wrapper on one device, a refresh against
/// copies one by one, bytes that an evaluation sends, the first device's peak
/// against the others', ddp against each of its peers turn by turn, and the
/// communication that its backward hides.
std::string figure_lines(
    const std::vector<train::ResultRow>& rows,
    int64_t steps_per_turn);

} // namespace tandem::bench
