#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/data/example.h>

#include "workloads/classifier.h"

namespace tandem::bench {

/// `rows` random rows for the network to learn, on the CPU; the same for the
/// same `seed`. Images have the dtype `dtype`; tokens and classes are integers.
torch::data::Example<> make_batch(
    Architecture architecture,
    int64_t rows,
    uint64_t seed,
    at::ScalarType dtype);

/// Mean cross-entropy of scores, [N, ..., classes], and classes, [N, ...],
/// which may lie on the CPU.
at::Tensor mean_cross_entropy(
    const at::Tensor& scores,
    const at::Tensor& target);

/// The same for each row, [N].
at::Tensor row_cross_entropy(
    const at::Tensor& scores,
    const at::Tensor& target);

} // namespace tandem::bench
