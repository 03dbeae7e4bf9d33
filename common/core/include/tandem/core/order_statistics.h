#pragma once

#include <cstddef>
#include <vector>

namespace tandem {

/// Order statistics of a sample, in the unit of its values.
struct OrderStatistics {
  double min = 0;
  double p10 = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
  size_t count = 0;
};

/// The `q`-quantile (0 to 1) of `sorted`, interpolated linearly between order
/// statistics as NumPy's default does. `sorted` is ascending and not empty.
double quantile(const std::vector<double>& sorted, double q);

/// Statistics of `values`, in any order. All zero, `count` included, if empty.
OrderStatistics order_statistics(std::vector<double> values);

} // namespace tandem
