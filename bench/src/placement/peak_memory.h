#pragma once

#include <cstdint>
#include <vector>

#include "placement/placement.h"

namespace tandem::bench {

/// The most bytes so far on each device that `worker` trains on; on the CPU of
/// this process (VmHWM), one entry.
std::vector<int64_t> peak_bytes(const WorkerScope& worker);

/// What is in use now is the peak from now on.
void reset_peak_bytes(const WorkerScope& worker);

} // namespace tandem::bench
