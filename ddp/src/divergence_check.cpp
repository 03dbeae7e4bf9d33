#include "divergence_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "bit_checksums.h"
#include "rank_text.h"

namespace tandem::detail {

namespace {

constexpr uint64_t kDivergenceFactor = 0x9e3779b97f4a7c15;

/// All parameters' checksums in one.
int64_t total_checksum(const at::Tensor& checksums) {
  uint64_t total = 0;
  const auto* sums = checksums.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < checksums.numel(); ++i) {
    total = (total ^ static_cast<uint64_t>(sums[i])) * kDivergenceFactor;
  }
  return static_cast<int64_t>(total);
}

/// The ranks whose entry is not that of most ranks; of rank 0 where none is.
/// `column`: one entry per rank.
std::vector<int64_t> ranks_apart(const at::Tensor& column) {
  std::map<int64_t, int64_t> num_by_value;
  const auto values = column.contiguous();
  const auto* entries = values.const_data_ptr<int64_t>();
  for (int64_t rank = 0; rank < values.numel(); ++rank) {
    ++num_by_value[entries[rank]];
  }
  auto common = entries[0];
  for (const auto& [value, num_ranks] : num_by_value) {
    if (num_ranks > num_by_value[common]) {
      common = value;
    }
  }
  std::vector<int64_t> apart;
  for (int64_t rank = 0; rank < values.numel(); ++rank) {
    if (entries[rank] != common) {
      apart.push_back(rank);
    }
  }
  return apart;
}

} // namespace

DivergenceCheck::DivergenceCheck(
    std::shared_ptr<comm::ProcessGroup> group,
    std::vector<NamedTensor> parameters,
    int64_t every)
    : group_(std::move(group)),
      parameters_(std::move(parameters)),
      every_(every) {}

void DivergenceCheck::step() {
  ++num_steps_;
  if (every_ > 0 && num_steps_ % every_ == 0 && group_->size() > 1) {
    compare();
  }
}

void DivergenceCheck::compare() {
  const auto checksums = bit_checksums(parameters_);
  const auto total = total_checksum(checksums);
  const auto hash = group_->collectives_hash();
  const auto sequence = static_cast<int64_t>(hash);
  // The complement's largest is the smallest's complement.
  auto extremes = at::tensor({total, ~total, sequence, ~sequence}, at::kLong)
                      .to(group_->device());
  group_->all_reduce(extremes, comm::ReduceOp::kMax);
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(extremes.nbytes());
  const auto found = extremes.cpu();
  const auto* largest = found.const_data_ptr<int64_t>();
  if (largest[0] != ~largest[1] || largest[2] != ~largest[3]) {
    throw_difference(checksums, hash);
  }
}

void DivergenceCheck::throw_difference(
    const at::Tensor& checksums,
    uint64_t collectives_hash) {
  const auto own = at::cat(
      {checksums,
       at::full({1}, static_cast<int64_t>(collectives_hash), at::kLong)});
  auto table = at::zeros({group_->size(), own.numel()}, at::kLong);
  table[group_->rank()].copy_(own);
  table = table.to(group_->device());
  group_->all_reduce(table);
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(table.nbytes());
  const auto all = table.cpu();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto apart = ranks_apart(all.select(1, static_cast<int64_t>(i)));
    if (!apart.empty()) {
      throw PeerError(fmt::format(
          "{} parameter '{}': expected the same bits on all {} ranks after "
          "step {}, got others on {}. It is the first one that differs; change "
          "parameters on all ranks alike",
          rank_tag(*group_),
          parameters_[i].name,
          group_->size(),
          num_steps_,
          comm::list_ranks(apart)));
    }
  }
  throw PeerError(fmt::format(
      "{} collectives: expected the same ones in the same order on all {} "
      "ranks "
      "up to step {}, got others on {}. TANDEM_DEBUG=detail finds the first",
      rank_tag(*group_),
      group_->size(),
      num_steps_,
      comm::list_ranks(ranks_apart(all.select(1, all.size(1) - 1)))));
}

} // namespace tandem::detail
