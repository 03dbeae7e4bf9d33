#pragma once

#include <cstdint>

#include "harness/bench_recipe.h"
#include "harness/mode.h"
#include "placement/placement.h"

namespace tandem::bench {

/// Makes this process a worker of a mode: verifies it, reports to the
/// coordinator at `port`, and runs turns until there are no more.
/// **Throws** if the coordinator is gone.
void work_for_coordinator(
    const Placement& placement,
    const Mode& mode,
    const BenchRecipe& recipe,
    int64_t mode_index,
    int64_t port);

} // namespace tandem::bench
