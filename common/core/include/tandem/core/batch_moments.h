#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tandem {

/// Count, mean and spread of each channel's values over some rows, in one
/// tensor, so that they travel together. Its dtype is the one statistics are
/// kept in: double for double, else float.
struct BatchMoments {
  at::Tensor packed; // [1 + 2 * C]

  int64_t num_channels() const {
    return (packed.numel() - 1) / 2;
  }
  /// Values per channel; 0-dim.
  at::Tensor count() const {
    return packed.select(0, 0);
  }
  at::Tensor mean() const { // [C]
    return packed.narrow(0, 1, num_channels());
  }
  /// Sum of the squared differences from the mean.
  at::Tensor m2() const { // [C]
    return packed.narrow(0, 1 + num_channels(), num_channels());
  }
};

/// Moments of `input` over all dimensions but the second. No rows give zeros.
/// Differentiable, twice too; keeps no tensor of the input's size but `input`.
/// **Shapes**: `input` [N, C, ...].
BatchMoments moments_of(const at::Tensor& input);

/// Moments over the rows of all parts. Differentiable, in fixed order.
/// **Shapes**: `parts` [P, 1 + 2 * C], one part's moments each.
/// **Source**: Chan, Golub, LeVeque, "Updating formulae and a pairwise
/// algorithm for computing sample variances", 1979.
BatchMoments combine_moments(const at::Tensor& parts);

} // namespace tandem
