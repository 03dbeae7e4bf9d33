#include "firing_counts.h"

#include <algorithm>

namespace tandem::detail {

FiringCounts::FiringCounts(size_t num_parameters)
    : seen_(num_parameters), expected_(num_parameters) {}

void FiringCounts::reduction_ended(bool is_whole) {
  if (is_learning_ && is_whole) {
    expected_ = seen_;
    is_learning_ = false;
  }
  std::fill(seen_.begin(), seen_.end(), 0);
}

} // namespace tandem::detail
