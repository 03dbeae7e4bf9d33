#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::detail {

/// Calls `function` in every backward that passes through one of `outputs`,
/// before it reaches what they were computed from. The outputs themselves are
/// not changed; the hook lives as long as their graph.
void call_before_backward_of(
    const std::vector<at::Tensor>& outputs,
    const std::function<void()>& function);

} // namespace tandem::detail
