#include "hooks/error_feedback.h"

#include "hooks/bucket_facts.h"

namespace tandem::ddp {

void ErrorFeedback::add_to(const comm::GradBucket& bucket) {
  auto& rest = rests_[bucket.index()];
  const auto& buffer = bucket.buffer();
  if (rest.elements.defined() && has_parameters(bucket, rest.parameters) &&
      rest.elements.scalar_type() == buffer.scalar_type()) {
    buffer.add_(rest.elements);
    rest.elements.copy_(buffer);
  } else {
    rest = {bucket.parameters(), buffer.clone()};
  }
}

void ErrorFeedback::subtract(
    const comm::GradBucket& bucket,
    const at::Tensor& sent) {
  rests_.at(bucket.index()).elements.sub_(sent);
}

} // namespace tandem::ddp
