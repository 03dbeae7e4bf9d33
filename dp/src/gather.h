#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <c10/core/Device.h>

#include <tandem/core/forward_call.h>

#include "transfer_counts.h"

namespace tandem::detail {

/// Joins the outputs of the chunks of `call` to its output: tensors are
/// concatenated along `dim` on `output_device`, 0-dim ones to a vector; plain
/// values are the first chunk's. Differentiable. Returns whether there were
/// 0-dim tensors.
/// **Throws** `ShapeError` naming the entry if outputs differ in structure, or
/// their tensors cannot be joined.
bool gather(
    ForwardCall& call,
    size_t num_chunks,
    const std::vector<at::Device>& devices,
    at::Device output_device,
    int64_t dim,
    TransferCounts& counts);

/// Moves the tensors of the output of `call` to `device`.
void move_output(ForwardCall& call, at::Device device);

} // namespace tandem::detail
