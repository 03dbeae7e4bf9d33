#pragma once

#include <variant>

namespace tandem {

/// How much a rank's gradients count in their mean over the ranks.
enum class SampleWeight {
  /// As much as any other's.
  kEqual,
  /// By the rows of its batch.
  kRows,
};

/// One of these, or a number.
using SampleWeighting = std::variant<SampleWeight, double>;

} // namespace tandem
