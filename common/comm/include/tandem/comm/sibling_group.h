#pragma once

#include <memory>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// A second group of the same ranks, over the same store and the same kinds of
/// backends: its collectives keep an order of their own, and one failing leaves
/// the other as it is.
/// **Collective**. **Throws** as `connect_group`.
std::shared_ptr<ProcessGroup> sibling_group(ProcessGroup& group);

} // namespace tandem::comm
