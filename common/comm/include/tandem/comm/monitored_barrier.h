#pragma once

#include <chrono>
#include <optional>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// A barrier that names who did not come: the ranks meet in the store, which
/// takes longer than `ProcessGroup::barrier` but leaves the backends alone, so
/// that the group is usable after an error. A rank that comes late passes.
///
/// `limit`: absent, the group's time limit for collectives.
/// **Collective**.
/// **Throws** `TimeoutError` naming all ranks that did not come within `limit`.
void monitored_barrier(
    ProcessGroup& group,
    std::optional<std::chrono::milliseconds> limit = std::nullopt);

} // namespace tandem::comm
