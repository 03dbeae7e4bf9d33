#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// A number for each tensor that changes with any single bit of its values, and
/// almost surely with any other change. Equal tensors on devices of one type
/// have the same; -0 and 0 differ, and so do two kinds of NaN.
/// **Shapes**: [tensors], int64, on the CPU.
/// **Streams**: reads on the current ones, and waits for them.
at::Tensor bit_checksums(const std::vector<NamedTensor>& tensors);

} // namespace tandem::detail
