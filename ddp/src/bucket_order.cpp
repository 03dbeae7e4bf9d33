#include "bucket_order.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_set>
#include <utility>

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

namespace tandem::detail {

BucketOrder::BucketOrder(std::vector<size_t> planned)
    : planned_(std::move(planned)) {}

void BucketOrder::arrived(size_t index) {
  if (stage_ == Stage::kRecording) {
    arrivals_.push_back(index);
  }
}

void BucketOrder::reduction_ended(bool is_whole) {
  if (stage_ != Stage::kRecording) {
    return;
  }
  if (is_whole) {
    stage_ = Stage::kRecorded;
  } else {
    arrivals_.clear();
  }
}

std::optional<std::vector<size_t>> BucketOrder::take(
    comm::ProcessGroup& group) {
  if (stage_ != Stage::kRecorded) {
    return std::nullopt;
  }
  stage_ = Stage::kTaken;
  auto order = std::exchange(arrivals_, {});
  const std::unordered_set<size_t> came(order.begin(), order.end());
  std::copy_if(
      planned_.begin(),
      planned_.end(),
      std::back_inserter(order),
      [&](size_t index) { return came.count(index) == 0; });
  TORCH_INTERNAL_ASSERT(order.size() == planned_.size());
  std::vector<int64_t> numbers(order.begin(), order.end());
  auto tensor = at::tensor(numbers, at::kLong);
  group.broadcast(tensor, /*root=*/0);
  const auto* first = tensor.const_data_ptr<int64_t>();
  order.assign(first, first + tensor.numel());
  if (order == planned_) {
    return std::nullopt;
  }
  planned_ = order;
  return order;
}

} // namespace tandem::detail
