#include <tandem/comm/sub_group.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/hierarchical_group.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

using tandem::comm::HierarchicalGroup;
using tandem::comm::new_group;
using tandem::comm::ProcessGroup;
using tandem::comm::ReduceOp;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::thrown_text;

namespace {

/// The sum of (rank in the world + 1) over the group's ranks; -1 without one.
int64_t sum_in(const std::shared_ptr<ProcessGroup>& group, int64_t world_rank) {
  if (!group) {
    return -1;
  }
  auto sum = torch::full({1}, world_rank + 1);
  group->all_reduce(sum);
  return sum.item<int64_t>();
}

using Values = std::vector<int64_t>;

} // namespace

TEST_CASE("a sub-group has its members alone", "[comm][groups]") {
  const auto results = run_ranks(4, [](RankContext& context) {
    const auto rank = context.rank();
    const auto odd = new_group({3, 1});
    const auto low = new_group({0, 1, 2});
    const auto alone = new_group({2});
    return Values{
        sum_in(odd, rank),
        sum_in(low, rank),
        sum_in(alone, rank),
        sum_in(context.group(), rank),
        odd ? odd->rank() : -1,
        odd ? odd->size() : -1};
  });
  CHECK(results[0] == Values{-1, 6, -1, 10, -1, -1});
  CHECK(results[1] == Values{6, 6, -1, 10, 0, 2});
  CHECK(results[2] == Values{-1, 6, 3, 10, -1, -1});
  CHECK(results[3] == Values{6, -1, -1, 10, 1, 2});
}

TEST_CASE("sub-groups nest", "[comm][groups]") {
  const auto results = run_ranks(5, [](RankContext& context) {
    const auto outer = new_group({1, 2, 4});
    const auto inner = outer ? new_group(*outer, {0, 2}) : nullptr;
    return sum_in(inner, context.rank());
  });
  CHECK(results == Values{-1, 7, -1, -1, 7});
}

TEST_CASE("sub-groups interleave their collectives", "[comm][groups]") {
  const auto results = run_ranks(4, [](RankContext& context) {
    const auto rank = context.rank();
    const auto row = rank < 2 ? 0 : 2;
    const auto column = rank % 2;
    std::vector<std::shared_ptr<ProcessGroup>> groups;
    for (const auto& ranks :
         {Values{0, 1}, Values{2, 3}, Values{0, 2}, Values{1, 3}}) {
      if (auto group = new_group(ranks)) {
        groups.push_back(std::move(group));
      }
    }
    const auto in_row = sum_in(groups[0], rank);
    const auto in_column = sum_in(groups[1], rank);
    return in_row == 2 * row + 3 && in_column == 2 * column + 4;
  });
  CHECK(results == std::vector<bool>(4, true));
}

TEST_CASE("a sub-group rejects ranks that cannot be", "[comm][groups]") {
  const auto texts = run_ranks(2, [](RankContext& context) {
    std::string all;
    for (const auto& ranks :
         {Values{}, Values{0, 0}, Values{0, 2}, Values{-1}}) {
      all += thrown_text<tandem::ConfigError>([&] {
               new_group(*context.group(), ranks);
             }).value_or("nothing thrown") +
          '\n';
    }
    return all;
  });
  CHECK(missing_parts(
            texts[1],
            {"[comm rank 1/2] ranks: expected different ones from 0 to 1",
             "got []",
             "got [0, 0]",
             "got [0, 2]",
             "got [-1]"})
            .empty());
}

TEST_CASE(
    "hierarchical all-reduce over 2 x 2 ranks is the all-reduce over all",
    "[comm][groups]") {
  const auto results = run_ranks(4, [](RankContext& context) {
    HierarchicalGroup levels(*context.group(), 2);
    std::vector<at::Tensor> reduced;
    for (const auto op :
         {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMin, ReduceOp::kMax}) {
      // Exact in double, whatever the order of additions.
      auto two_levels = torch::arange(7, at::kDouble) * (context.rank() + 1);
      auto one_level = two_levels.clone();
      levels.all_reduce(two_levels, op);
      context.group()->all_reduce(one_level, op);
      reduced.push_back(two_levels);
      reduced.push_back(one_level);
    }
    const auto block_size = levels.block()->size();
    const auto num_leaders = levels.leaders() ? levels.leaders()->size() : 0;
    reduced.push_back(torch::tensor({block_size, num_leaders}));
    return reduced;
  });
  for (size_t rank = 0; rank < results.size(); ++rank) {
    const int64_t num_leaders = rank % 2 == 0 ? 2 : 0;
    CHECK(at::equal(
        results[rank].back(),
        torch::tensor({int64_t{2}, num_leaders})));
  }
  for (const auto& reduced : results) {
    for (size_t i = 0; i + 1 < reduced.size(); i += 2) {
      CHECK(at::equal(reduced[i], reduced[i + 1]));
      CHECK(at::equal(reduced[i], results[0][i]));
    }
  }
}

TEST_CASE(
    "hierarchical all-reduce wants blocks that fill the world",
    "[comm][groups]") {
  const auto texts = run_ranks(3, [](RankContext& context) {
    return thrown_text<tandem::ConfigError>(
               [&] { HierarchicalGroup(*context.group(), 2); })
        .value_or("nothing thrown");
  });
  CHECK(missing_parts(texts[2], {"block_size", "which is 3", "got 2"}).empty());
}
