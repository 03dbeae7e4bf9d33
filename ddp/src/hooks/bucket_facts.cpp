#include "hooks/bucket_facts.h"

#include <algorithm>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/core/named_tensors.h>

namespace tandem::ddp {

bool is_compressible(const comm::GradBucket& bucket) {
  return !bucket.is_sparse() && bucket.buffer().is_floating_point();
}

int64_t bytes_of(const comm::GradBucket& bucket) {
  const auto& buffer = bucket.buffer();
  if (!bucket.is_sparse()) {
    return static_cast<int64_t>(buffer.nbytes());
  }
  return static_cast<int64_t>(
      buffer._values().nbytes() + buffer._indices().nbytes());
}

bool has_parameters(
    const comm::GradBucket& bucket,
    const std::vector<NamedTensor>& parameters) {
  return std::equal(
      bucket.parameters().begin(),
      bucket.parameters().end(),
      parameters.begin(),
      parameters.end(),
      [](const auto& left, const auto& right) {
        return left.tensor.is_same(right.tensor);
      });
}

} // namespace tandem::ddp
