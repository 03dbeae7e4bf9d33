#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// What c10d calls `op`.
c10d::ReduceOp to_c10d(ReduceOp op);

/// Contiguous tensors may be handed to a backend as they are.
/// **Throws** `ShapeError`, its message beginning with `tag`.
void check_contiguous(const std::string& tag, const at::Tensor& tensor);

/// **Throws** `ShapeError` if `op` cannot combine values of the dtype.
void check_reducible(
    const std::string& tag,
    const at::Tensor& tensor,
    ReduceOp op);

/// `tensor`, or its view as reals if it is complex.
at::Tensor as_real(const at::Tensor& tensor);

} // namespace tandem::comm
