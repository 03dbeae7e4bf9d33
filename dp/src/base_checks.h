#pragma once

#include <vector>

#include <c10/core/Device.h>

#include "tensor_table.h"

namespace tandem::detail {

/// **Throws** `ConfigError` naming the first tensor that is not a dense tensor
/// on `device`, where the wrapped module must be.
void check_base_tensors(const std::vector<BaseTensor>& base, at::Device device);

} // namespace tandem::detail
