#pragma once

#include <string>
#include <vector>

#include <tandem/comm/process_group.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// "[ddp rank 1/4]", which begins every message.
std::string rank_tag(const comm::ProcessGroup& group);

/// "'fc.weight', 'fc.bias' and 3 more", naming at most `limit`.
std::string quoted_names(
    const std::vector<NamedTensor>& tensors,
    const std::vector<size_t>& indices,
    size_t limit);

} // namespace tandem::detail
