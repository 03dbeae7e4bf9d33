#include "bucket.h"

#include <cmath>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>
#include <c10/core/ScalarType.h>

#include <tandem/core/bucket_plan.h>
#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

namespace {

at::ScalarType bucket_dtype(at::ScalarType dtype, bool in_float) {
  const bool is_half = dtype == at::kHalf || dtype == at::kBFloat16;
  return is_half && in_float ? at::kFloat : dtype;
}

/// Differs between tensors that cannot share a bucket.
int64_t type_of(const at::Tensor& tensor) {
  constexpr int64_t values_per_field = 256;
  const auto device = tensor.device();
  return (static_cast<int64_t>(device.type()) * values_per_field +
          device.index() + 1) *
      values_per_field +
      static_cast<int64_t>(tensor.scalar_type());
}

Bucket make_bucket(
    const std::vector<NamedTensor>& parameters,
    std::vector<size_t> members,
    bool in_float) {
  Bucket bucket;
  bucket.parameters = std::move(members);
  std::vector<int64_t> numels;
  numels.reserve(bucket.parameters.size());
  for (const size_t index : bucket.parameters) {
    numels.push_back(parameters[index].tensor.numel());
  }
  const auto layout = make_flat_layout(numels);
  const auto& first = parameters[bucket.parameters.front()].tensor;
  const auto dtype = bucket_dtype(first.scalar_type(), in_float);
  bucket.has_own_dtype = dtype == first.scalar_type();
  bucket.flat = at::zeros(
      {layout.total_elems},
      at::TensorOptions(first.device()).dtype(dtype));
  for (size_t i = 0; i < bucket.parameters.size(); ++i) {
    bucket.views.push_back(view_into_flat(
        bucket.flat,
        layout.offsets_elems[i],
        parameters[bucket.parameters[i]].tensor));
  }
  return bucket;
}

} // namespace

std::vector<Bucket> make_buckets(
    const std::vector<NamedTensor>& parameters,
    const std::vector<size_t>& order,
    const BucketSizes& sizes) {
  std::vector<BucketItem> items;
  items.reserve(order.size());
  for (const size_t index : order) {
    const auto& tensor = parameters[index].tensor;
    const auto dtype = bucket_dtype(tensor.scalar_type(), sizes.in_float);
    items.push_back(
        {tensor.numel() * static_cast<int64_t>(c10::elementSize(dtype)),
         type_of(tensor)});
  }
  std::vector<Bucket> buckets;
  for (auto& members :
       plan_buckets(items, {sizes.first_bytes, sizes.cap_bytes})) {
    for (size_t& member : members) {
      member = order[member];
    }
    buckets.push_back(
        make_bucket(parameters, std::move(members), sizes.in_float));
  }
  return buckets;
}

std::vector<GradientSlot> gradient_slots(
    const std::vector<Bucket>& buckets,
    size_t num_parameters) {
  std::vector<GradientSlot> slots(num_parameters);
  for (size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const auto& members = buckets[bucket].parameters;
    for (size_t position = 0; position < members.size(); ++position) {
      slots[members[position]] = {bucket, position};
    }
  }
  return slots;
}

void store_gradient(
    const at::Tensor& view,
    const at::Tensor& grad,
    double divisor) {
  at::Tensor out = view;
  if (!grad.defined() || !std::isfinite(divisor)) {
    out.zero_();
  } else if (grad.scalar_type() != view.scalar_type()) {
    out.copy_(grad).div_(divisor);
  } else {
    // A wrapped number does not take part in type promotion.
    at::div_out(out, grad, at::native::wrapped_scalar_tensor(divisor));
  }
}

bool is_same_view(const at::Tensor& left, const at::Tensor& right) {
  return left.defined() && right.defined() && left.is_alias_of(right) &&
      left.storage_offset() == right.storage_offset() &&
      left.sizes() == right.sizes() && left.strides() == right.strides();
}

} // namespace tandem::detail
