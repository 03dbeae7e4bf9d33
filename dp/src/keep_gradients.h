#pragma once

#include <functional>
#include <vector>

#include "tensor_table.h"

namespace tandem::detail {

/// Runs `body`, a forward of several replicas, and then gives base tensors
/// whose gradient it has taken away (`zero_grad` in the module's own `forward`)
/// that gradient back, with a warning, once; also if `body` throws.
void keep_gradients(
    const std::vector<BaseTensor>& base,
    const std::function<void()>& body);

} // namespace tandem::detail
