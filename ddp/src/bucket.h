#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// Gradients of one dtype and device that are reduced in one transfer.
struct Bucket {
  at::Tensor flat; // [elements]
  /// The parameters whose gradients lie in `flat`, by index, in its order.
  std::vector<size_t> parameters;
  /// The gradients as views into `flat`, shaped and strided as the parameters.
  std::vector<at::Tensor> views;
  /// Gradients still to come in this reduction.
  size_t num_pending = 0;
  /// The all-reduce, from its launch until the gradients are handed over.
  c10::intrusive_ptr<c10d::Work> work;
};

/// Where a parameter's gradient lies.
struct GradientSlot {
  size_t bucket = 0;
  size_t position = 0;
};

/// Buckets over `parameters` in reverse order, since backward reaches the last
/// layers first.
std::vector<Bucket> make_buckets(
    const std::vector<NamedTensor>& parameters,
    int64_t first_bucket_bytes,
    int64_t bucket_cap_bytes);

/// The slot of each parameter.
std::vector<GradientSlot> gradient_slots(
    const std::vector<Bucket>& buckets,
    size_t num_parameters);

/// Writes `grad` / `divisor` into `view`; in one pass, in place where `grad` is
/// that view already. An undefined `grad` counts as zeros, and so does any where
/// `divisor` is infinite: a batch without rows gives NaN.
void store_gradient(
    const at::Tensor& view,
    const at::Tensor& grad,
    double divisor);

/// Whether the two are the same view of the same memory.
bool is_same_view(const at::Tensor& left, const at::Tensor& right);

} // namespace tandem::detail
