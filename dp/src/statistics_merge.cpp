#include "statistics_merge.h"

namespace tandem::detail {

StatisticsMerge::StatisticsMerge(
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas) {
  replicas_.reserve(replicas.size());
  for (const auto& replica : replicas) {
    replicas_.emplace_back(*replica);
  }
}

void StatisticsMerge::begin() {
  is_needed_ = replicas_.front().is_training();
  if (is_needed_) {
    for (auto& replica : replicas_) {
      replica.begin();
    }
  }
}

void StatisticsMerge::finish(
    const std::vector<int64_t>& chunk_rows,
    TransferCounts& counts) {
  if (!is_needed_) {
    return;
  }
  auto sum = replicas_.front().contribution(chunk_rows.front());
  for (size_t chunk = 1; chunk < chunk_rows.size(); ++chunk) {
    const auto part =
        replicas_[chunk].contribution(chunk_rows[chunk]).to(sum.device());
    counts.add(part);
    sum.add_(part);
  }
  replicas_.front().adopt(sum);
  for (size_t replica = 1; replica < replicas_.size(); ++replica) {
    const auto copy = sum.to(replicas_[replica].device());
    counts.add(copy);
    replicas_[replica].adopt(copy);
  }
}

} // namespace tandem::detail
