#include <tandem/core/order_statistics.h>

#include <algorithm>
#include <cmath>

namespace tandem {

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const auto above = std::min(below + 1, sorted.size() - 1);
  const double fraction = position - std::floor(position);
  return sorted[below] + fraction * (sorted[above] - sorted[below]);
}

OrderStatistics order_statistics(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::sort(values.begin(), values.end());
  return {
      values.front(),
      quantile(values, 0.10),
      quantile(values, 0.50),
      quantile(values, 0.90),
      quantile(values, 0.99),
      values.back(),
      values.size()};
}

} // namespace tandem
