#include "bucket.h"

#include <cmath>

#include <ATen/Functions.h>
#include <ATen/ScalarOps.h>

#include <tandem/core/bucket_plan.h>
#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

namespace {

Bucket make_bucket(
    const std::vector<NamedTensor>& parameters,
    std::vector<size_t> members) {
  Bucket bucket;
  bucket.parameters = std::move(members);
  std::vector<int64_t> numels;
  numels.reserve(bucket.parameters.size());
  for (const size_t index : bucket.parameters) {
    numels.push_back(parameters[index].tensor.numel());
  }
  const auto layout = make_flat_layout(numels);
  const auto& first = parameters[bucket.parameters.front()].tensor;
  bucket.flat = at::zeros(
      {layout.total_elems},
      at::TensorOptions(first.device()).dtype(first.dtype()));
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
    int64_t first_bucket_bytes,
    int64_t bucket_cap_bytes) {
  std::vector<BucketItem> items;
  items.reserve(parameters.size());
  for (size_t i = parameters.size(); i-- > 0;) {
    const auto& tensor = parameters[i].tensor;
    items.push_back(
        {static_cast<int64_t>(tensor.nbytes()),
         static_cast<int64_t>(tensor.scalar_type())});
  }
  std::vector<Bucket> buckets;
  for (auto& members :
       plan_buckets(items, {first_bucket_bytes, bucket_cap_bytes})) {
    for (size_t& member : members) {
      member = parameters.size() - 1 - member;
    }
    buckets.push_back(make_bucket(parameters, std::move(members)));
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
  if (grad.defined() && std::isfinite(divisor)) {
    // A wrapped number does not take part in type promotion.
    at::div_out(out, grad, at::native::wrapped_scalar_tensor(divisor));
  } else {
    out.zero_();
  }
}

bool is_same_view(const at::Tensor& left, const at::Tensor& right) {
  return left.defined() && right.defined() && left.is_alias_of(right) &&
      left.storage_offset() == right.storage_offset() &&
      left.sizes() == right.sizes() && left.strides() == right.strides();
}

} // namespace tandem::detail
