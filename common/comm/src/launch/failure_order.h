#pragma once

#include <vector>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

/// Puts the failures of one attempt in the order in which they happened, so
/// that the first is the cause. Those of ranks that lost a peer come last.
void sort_by_cause(std::vector<RankFailure>& failures);

} // namespace tandem::comm::launch
