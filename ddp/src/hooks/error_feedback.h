#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/grad_bucket.h>
#include <tandem/core/named_tensors.h>

namespace tandem::ddp {

/// What compression has left out of this rank's gradients so far, by bucket.
/// Where a bucket's parameters have changed, it begins anew.
class ErrorFeedback {
 public:
  /// Adds the rest to the gradients, and keeps the sum.
  void add_to(const comm::GradBucket& bucket);
  /// Makes the rest what the sum has beyond `sent`, which stands for it.
  void subtract(const comm::GradBucket& bucket, const at::Tensor& sent);

 private:
  struct Rest {
    std::vector<NamedTensor> parameters;
    at::Tensor elements; // [elements of the bucket]
  };
  std::map<size_t, Rest> rests_;
};

} // namespace tandem::ddp
