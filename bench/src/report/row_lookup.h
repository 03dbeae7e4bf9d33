#pragma once

#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// "dp evaluate", "ddp fp16_compress": what a row is called in a table.
std::string mode_of(const train::ResultRow& row);

/// The row of one strategy's mode without a hook, workers of `threads` threads each; null if
/// there is none.
const train::ResultRow* find_row(
    const std::vector<train::ResultRow>& rows,
    const std::string& strategy,
    const std::string& variant,
    int64_t threads);

/// Median of a step's time. **Throws** nothing; `row` was timed.
double median_ms(const train::ResultRow& row);

/// Workers of the row do not wait for each other's cores, so that its speed
/// says something.
bool has_cores(const train::ResultRow& row, int64_t cores);

/// A line of text for each row that has not.
std::string notes_on_cores(
    const std::vector<train::ResultRow>& rows,
    int64_t cores);

} // namespace tandem::bench
