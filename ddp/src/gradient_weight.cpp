#include "gradient_weight.h"

#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "rank_text.h"

namespace tandem::detail {

GradientWeight::GradientWeight(
    std::shared_ptr<comm::ProcessGroup> group,
    double weight)
    : group_(std::move(group)),
      weight_(weight),
      sum_(at::full({1}, weight, at::kDouble)),
      work_(group_->all_reduce_async(sum_)) {}

double GradientWeight::sum() {
  if (work_) {
    group_->wait(std::exchange(work_, nullptr), "sum of the sample weights");
  }
  const auto sum = sum_.item<double>();
  if (sum <= 0) {
    throw ConfigError(fmt::format(
        "{} sample weight: expected a sum over the ranks above 0, got {}. Give "
        "at least one rank rows or a weight",
        rank_tag(*group_),
        sum));
  }
  return sum;
}

} // namespace tandem::detail
