#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem {

/// What the plan needs to know of a tensor.
struct BucketItem {
  int64_t bytes = 0;
  /// Tensors with different types (dtype and device) never share a bucket.
  int64_t type = 0;
};

/// Assigns items to buckets: within a type, in the order given, a bucket closes
/// as soon as it holds at least the current cap; then the type's next cap
/// applies (the last one repeats). Items are never split, so a bucket may
/// exceed its cap. Buckets are ordered by their first item.
///
/// `caps_bytes` is not empty. Returns the items' indices, bucket by bucket.
/// **Source**: the documented behaviour of
/// `c10d::compute_bucket_assignment_by_size`.
std::vector<std::vector<size_t>> plan_buckets(
    const std::vector<BucketItem>& items,
    const std::vector<int64_t>& caps_bytes);

} // namespace tandem
