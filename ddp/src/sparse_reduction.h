#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// Sum over the ranks of their sparse gradients of one parameter; every rank
/// sends its rows to all others. An undefined `grad` adds none. Coalesced, and
/// the same on every rank bit for bit.
/// **Collective**. **Throws** as `ProcessGroup::confirm`.
at::Tensor sum_sparse(
    comm::ProcessGroup& group,
    const NamedTensor& parameter,
    const at::Tensor& grad,
    Counters& counters);

} // namespace tandem::detail
