#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// A group of some of `parent`'s ranks, over the same store and the same kinds
/// of backends. Members are numbered anew from 0, in the order of their ranks
/// in `parent`. Ranks that are no members get null.
///
/// Any number of groups may be made, disjoint or not, and groups of groups;
/// each keeps an order of its own, and one failing leaves the others as they
/// are.
/// **Collective** over all ranks of `parent`, members or not, with the same
/// `ranks`; only members wait for each other.
/// **Throws** `ConfigError` if `ranks` is empty, has a rank twice or one that
/// `parent` has not; else as `connect_group`.
///
/// Example:
/// ```cpp
/// auto even = tandem::comm::new_group({0, 2});
/// if (even) { even->all_reduce(tensor); }
/// ```
std::shared_ptr<ProcessGroup> new_group(
    ProcessGroup& parent,
    std::vector<int64_t> ranks);

/// Likewise, of the default group's ranks.
std::shared_ptr<ProcessGroup> new_group(std::vector<int64_t> ranks);

} // namespace tandem::comm
