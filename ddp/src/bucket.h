#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// Gradients of one dtype and device that are reduced in one transfer.
struct Bucket {
  at::Tensor flat; // [elements]
  /// The parameters whose gradients lie in `flat`, by index, in its order.
  std::vector<size_t> parameters;
  /// The gradients as views into `flat`, shaped and strided as the parameters.
  std::vector<at::Tensor> views;
  /// `flat` has the parameters' dtype, so that views may be their gradients.
  bool has_own_dtype = true;
  /// Gradients still to come in this reduction.
  size_t num_pending = 0;
  /// No rank has anything for it in this reduction.
  bool is_skipped = false;
  /// The reduction, from its launch until the gradients are handed over.
  c10::intrusive_ptr<c10d::Work> work;
  /// With a communication hook, what it got and gave.
  std::optional<comm::GradBucket> lent;
  comm::TensorFuture future;
};

/// Where a parameter's gradient lies.
struct GradientSlot {
  static constexpr size_t kNoBucket = static_cast<size_t>(-1);

  /// `kNoBucket` for those that are reduced by themselves.
  size_t bucket = kNoBucket;
  size_t position = 0;
};

struct BucketSizes {
  int64_t first_bytes;
  int64_t cap_bytes;
  /// Half precision is summed in float.
  bool in_float;
};

/// Buckets over those of `parameters` that `order` lists, in that order.
std::vector<Bucket> make_buckets(
    const std::vector<NamedTensor>& parameters,
    const std::vector<size_t>& order,
    const BucketSizes& sizes);

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
