#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DispatchKeySet.h>

namespace tandem::sim {

/// A tensor over `storage` with the shape, strides and dtype of `like`, for the
/// backend of `key`.
at::Tensor strided_over(
    c10::Storage storage,
    const at::Tensor& like,
    c10::DispatchKey key);

/// A storage of the CPU over the bytes of a device's `storage`, which must
/// outlive it. `written`: somebody will write through it.
c10::Storage alias_of(const c10::Storage& storage, bool written);

/// The CPU tensor over the bytes of a strided device tensor; CPU tensors as
/// they are.
at::Tensor cpu_view_of(const at::Tensor& tensor, bool written);

/// Likewise, to be written to; keeps the device's bytes alive.
at::Tensor lasting_cpu_view_of(const at::Tensor& tensor);

/// A sparse tensor of these parts with the shape of `like`, a sparse tensor
/// too, on the device of `values`. **Requires**: that is the current one.
at::Tensor sparse_of(
    const at::Tensor& indices,
    const at::Tensor& values,
    const at::Tensor& like,
    c10::DispatchKey key);

/// Makes `tensor` what `sparse_of` would give, in place.
void set_sparse(
    const at::Tensor& tensor,
    const at::Tensor& indices,
    const at::Tensor& values,
    const at::Tensor& like);

/// The parts of a sparse tensor, whether coalesced or not.
const at::Tensor& indices_of(const at::Tensor& sparse);
const at::Tensor& values_of(const at::Tensor& sparse);

} // namespace tandem::sim
