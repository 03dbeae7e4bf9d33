#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench {

/// Speed against single at one thread, for rows of which both were timed and
/// whose workers have cores of their own.
void set_speedups(std::vector<train::ResultRow>& rows, int64_t cores);

/// The table of a run, a line for each row: step times, samples per second,
/// the ratio of speeds to single at one thread and to ddp-nosync (where such
/// rows are there), and the peak memory of each device or process.
std::string bench_table(
    const std::vector<train::ResultRow>& rows,
    int64_t cores);

} // namespace tandem::bench
