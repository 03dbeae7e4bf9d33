#include "gradient_use.h"

#include <algorithm>
#include <utility>

#include <ATen/Functions.h>

namespace tandem::detail {

GradientUse::GradientUse(
    std::shared_ptr<comm::ProcessGroup> group,
    size_t num_parameters)
    : group_(std::move(group)),
      here_(num_parameters),
      anywhere_(num_parameters) {}

void GradientUse::start() {
  sent_ = at::empty({static_cast<int64_t>(here_.size())}, at::kByte);
  std::copy(here_.begin(), here_.end(), sent_.mutable_data_ptr<uint8_t>());
  work_ = group_->all_reduce_async(sent_, comm::ReduceOp::kMax);
}

void GradientUse::finish() {
  group_->wait(
      std::exchange(work_, nullptr),
      "all-reduce of the parameters in use");
  const auto* first = sent_.const_data_ptr<uint8_t>();
  std::copy(first, first + sent_.numel(), anywhere_.begin());
}

void GradientUse::restart() {
  std::fill(here_.begin(), here_.end(), 0);
}

} // namespace tandem::detail
