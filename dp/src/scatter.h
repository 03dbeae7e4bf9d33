#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <tandem/core/forward_call.h>

#include "transfer_counts.h"

namespace tandem::detail {

/// Sizes of the chunks of `rows` rows for at most `num_devices` devices: as
/// even as `ceil(rows / num_devices)` rows per chunk allow. No rows are one
/// chunk of none.
std::vector<int64_t> plan_chunks(int64_t rows, size_t num_devices);

/// Input tensors of a call, by chunk, in the order of the arguments' leaves.
using ScatteredInputs = std::vector<std::vector<at::Tensor>>;

/// Cuts the input tensors of `call` along `dim` and copies each chunk to its
/// device; 0-dim tensors are copied to all, undefined ones stay so.
/// Differentiable. Returns one chunk if there is nothing to cut.
/// **Throws** `ShapeError` naming the argument if a tensor lacks `dim` or would
/// give another number of chunks than the first.
ScatteredInputs scatter(
    const ForwardCall& call,
    const std::vector<at::Device>& devices,
    int64_t dim,
    TransferCounts& counts);

} // namespace tandem::detail
