#pragma once

#include <cstdint>

#include <tandem/check_equivalence.h>

#include "placement/placement.h"
#include "workloads/classifier.h"

namespace tandem::bench {

/// Largest difference that `tandem verify` accepts, in double precision.
inline constexpr double kVerifyTolerance = 1e-9;

/// What is compared with the bare module; the defaults are right, others show
/// what verify finds.
struct VerifyRecipe {
  Architecture model = Architecture::kCnn;
  RefreshPolicy refresh_policy = DataParallelOptions().refresh_policy();
  bool broadcast_buffers = true;
};

/// Rows of each step's whole batch.
int64_t verify_batch(int64_t workers);

/// Compares this worker's wrapper with the bare module in double precision over
/// three steps; between them buffers are disturbed, differently on each rank.
/// **Collective** over the workers' ranks.
EquivalenceReport verify(const WorkerScope& worker, const VerifyRecipe& recipe);

} // namespace tandem::bench
