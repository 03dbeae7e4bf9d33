#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// Gives `root`'s values of all `tensors` to all ranks, in place, in few
/// broadcasts: tensors of one dtype and device travel together, in their order,
/// until at least `buffer_bytes` are. Any layout of memory will do. More
/// `buffer_bytes` are fewer broadcasts, and that much more memory meanwhile.
/// **Collective**, with tensors of the same sizes and dtypes on all ranks.
/// **Throws** as `ProcessGroup::broadcast`.
void broadcast_coalesced(
    ProcessGroup& group,
    const std::vector<at::Tensor>& tensors,
    int64_t root = 0,
    int64_t buffer_bytes = int64_t{25} << 20);

} // namespace tandem::comm
