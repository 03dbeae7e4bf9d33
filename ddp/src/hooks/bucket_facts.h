#pragma once

#include <cstdint>
#include <vector>

#include <tandem/comm/grad_bucket.h>
#include <tandem/core/named_tensors.h>

namespace tandem::ddp {

/// Whether hooks may compress the bucket's gradients: dense real numbers.
bool is_compressible(const comm::GradBucket& bucket);

/// What the gradients take; of sparse ones, their values and indices.
int64_t bytes_of(const comm::GradBucket& bucket);

/// Whether it holds just these, in this order: what was remembered of them
/// still fits.
bool has_parameters(
    const comm::GradBucket& bucket,
    const std::vector<NamedTensor>& parameters);

} // namespace tandem::ddp
