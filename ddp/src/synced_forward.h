#pragma once

#include <memory>
#include <vector>

#include "gradient_weight.h"

namespace tandem::detail {

/// One forward whose backward is to be reduced; lives as long as its graph.
struct SyncedForward {
  /// How much its gradients count; null: as much as any other rank's.
  std::shared_ptr<GradientWeight> weight;
  /// By parameter: did not require grad.
  std::vector<bool> is_frozen;
  /// By parameter: no path leads to it from the outputs. Empty if unknown.
  std::vector<bool> is_unreached;
  /// Its backward has begun.
  bool is_reduced = false;
};

} // namespace tandem::detail
