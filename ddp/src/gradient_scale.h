#pragma once

#include <tandem/ddp/options.h>

#include "gradient_weight.h"

namespace tandem::detail {

/// What gradients are divided by before and after their sum over the ranks.
struct GradientScale {
  /// Infinite for gradients that do not count.
  double before;
  double after;

  bool operator==(const GradientScale&) const = default;
};

/// `weight` may be null. With a communication hook, which makes the mean, only
/// what differs between ranks is divided by.
/// **Throws** as `GradientWeight::sum`.
GradientScale gradient_scale(
    const DistributedDataParallelOptions& options,
    int64_t world_size,
    GradientWeight* weight,
    bool has_hook);

} // namespace tandem::detail
