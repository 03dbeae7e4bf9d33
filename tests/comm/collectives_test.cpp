#include <tandem/comm/process_group.h>

#include <atomic>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

using tandem::comm::ReduceOp;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::thrown_text;

namespace {

constexpr int64_t kWorlds[] = {1, 2, 3, 5};

/// Rank r holds (r + 1) * [1, 2, ... n]: exact in every dtype for n <= 10.
at::Tensor ramp(int64_t rank, int64_t size, at::ScalarType dtype) {
  return (torch::arange(1, size + 1) * (rank + 1)).to(dtype);
}

at::Tensor reduced_ramp(
    int64_t world_size,
    int64_t size,
    at::ScalarType dtype,
    ReduceOp op) {
  const auto ones = torch::arange(1, size + 1).to(at::kDouble);
  const auto world = static_cast<double>(world_size);
  switch (op) {
    case ReduceOp::kSum:
      return (ones * (world * (world + 1) / 2)).to(dtype);
    case ReduceOp::kMean:
      return (ones * ((world + 1) / 2)).to(dtype);
    case ReduceOp::kMin:
      return ones.to(dtype);
    case ReduceOp::kMax:
      return (ones * world).to(dtype);
    case ReduceOp::kProduct:
      break; // see group_cases_test.cpp
  }
  return {};
}

void check_all_reduce(
    int64_t world_size,
    int64_t size,
    at::ScalarType dtype,
    ReduceOp op) {
  CAPTURE(world_size, size, toString(dtype), static_cast<int>(op));
  const auto results = run_ranks(world_size, [&](RankContext& context) {
    auto tensor = ramp(context.rank(), size, dtype);
    context.group()->all_reduce(tensor, op);
    return tensor;
  });
  for (const auto& result : results) {
    CHECK(at::equal(result, reduced_ramp(world_size, size, dtype, op)));
  }
}

} // namespace

TEST_CASE("all-reduce combines every dtype exactly", "[comm]") {
  for (const auto dtype :
       {at::kFloat,
        at::kDouble,
        at::kHalf,
        at::kBFloat16,
        at::kComplexFloat,
        at::kComplexDouble}) {
    check_all_reduce(3, 10, dtype, ReduceOp::kSum);
    check_all_reduce(3, 10, dtype, ReduceOp::kMean);
  }
  for (const auto dtype : {at::kChar, at::kByte, at::kInt, at::kLong}) {
    check_all_reduce(3, 10, dtype, ReduceOp::kSum);
    check_all_reduce(3, 10, dtype, ReduceOp::kMin);
    check_all_reduce(3, 10, dtype, ReduceOp::kMax);
  }
}

TEST_CASE("all-reduce serves every world and size", "[comm]") {
  for (const auto world_size : kWorlds) {
    for (const int64_t size : {0, 1, 7}) {
      check_all_reduce(world_size, size, at::kDouble, ReduceOp::kSum);
      check_all_reduce(world_size, size, at::kDouble, ReduceOp::kMean);
      check_all_reduce(world_size, size, at::kDouble, ReduceOp::kMax);
    }
  }
}

TEST_CASE("broadcast gives the root's values to all ranks", "[comm]") {
  for (const auto world_size : kWorlds) {
    for (int64_t root = 0; root < world_size; ++root) {
      const auto results = run_ranks(world_size, [&](RankContext& context) {
        auto tensor = ramp(context.rank(), 7, at::kComplexFloat);
        context.group()->broadcast(tensor, root);
        return tensor;
      });
      for (const auto& result : results) {
        CHECK(at::equal(result, ramp(root, 7, at::kComplexFloat)));
      }
    }
  }
}

TEST_CASE(
    "blocking collectives take tensors that are not contiguous",
    "[comm]") {
  const auto results = run_ranks(2, [](RankContext& context) {
    const auto base = ramp(context.rank(), 6, at::kDouble).view({2, 3});
    auto columns = base.t();
    context.group()->all_reduce(columns);
    auto copy = base.clone();
    auto copied_columns = copy.t();
    context.group()->broadcast(copied_columns, 1);
    return std::vector<at::Tensor>{base, copy};
  });
  const auto sum = reduced_ramp(2, 6, at::kDouble, ReduceOp::kSum).view({2, 3});
  for (const auto& result : results) {
    CHECK(at::equal(result[0], sum));
    CHECK(at::equal(result[1], sum));
  }
}

TEST_CASE("collectives leave gradients' graph alone", "[comm]") {
  const auto results = run_ranks(2, [](RankContext& context) {
    auto leaf = torch::ones({3}, torch::requires_grad());
    context.group()->all_reduce(leaf);
    return leaf;
  });
  CHECK(results[0].is_leaf());
  CHECK(at::equal(results[0].detach(), torch::full({3}, 2.0)));
}

TEST_CASE(
    "all-reduce gives the same bits on all ranks and at every call",
    "[comm][COL-08]") {
  constexpr int64_t num_elems = 1 << 18;
  constexpr int num_calls = 3;
  for (const int64_t world_size : {2, 3, 4}) {
    CAPTURE(world_size);
    auto generator = at::detail::createCPUGenerator(7);
    std::vector<at::Tensor> inputs;
    double scale = 1;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      inputs.push_back(torch::randn({num_elems}, generator) * scale);
      scale *= 10;
    }
    const auto results = run_ranks(world_size, [&](RankContext& context) {
      std::vector<at::Tensor> sums;
      for (int call = 0; call < num_calls; ++call) {
        sums.push_back(inputs[context.rank()].clone());
        context.group()->all_reduce(sums.back());
      }
      return sums;
    });
    for (const auto& sums : results) {
      for (const auto& sum : sums) {
        CHECK(at::equal(sum, results[0][0]));
      }
    }
    const auto expected = torch::stack(inputs).to(at::kDouble).sum(0);
    // One rounding to float per addition of the largest term's size.
    CHECK(
        (results[0][0].to(at::kDouble) - expected).abs().max().item<double>() <
        scale * 1e-6);
  }
}

TEST_CASE("collectives started together end in any order of waits", "[comm]") {
  constexpr int num_started = 50;
  const auto results = run_ranks(3, [](RankContext& context) {
    std::vector<at::Tensor> tensors;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    auto& group = *context.group();
    for (int i = 0; i < num_started; ++i) {
      tensors.push_back(torch::full({100}, i + context.rank(), at::kLong));
      works.push_back(
          i % 2 == 0 ? group.all_reduce_async(tensors.back())
                     : group.broadcast_async(tensors.back(), i % 3));
    }
    for (int i = num_started - 1; i >= 0; --i) {
      group.wait(works[i], "collective " + std::to_string(i));
    }
    return tensors;
  });
  for (const auto& tensors : results) {
    for (int i = 0; i < num_started; ++i) {
      const int64_t expected = i % 2 == 0 ? 3 * i + 3 : i + i % 3;
      CHECK(at::equal(tensors[i], torch::full({100}, expected, at::kLong)));
    }
  }
}

TEST_CASE("collectives reject tensors that they cannot serve", "[comm]") {
  const auto texts = run_ranks(1, [](RankContext& context) {
    auto& group = *context.group();
    const auto text_of = [&](at::Tensor tensor, ReduceOp op) {
      return thrown_text<tandem::ShapeError>(
                 [&] { group.all_reduce_async(tensor, op); })
          .value_or("nothing thrown");
    };
    return std::vector<std::string>{
        text_of(torch::ones({2, 3}).t(), ReduceOp::kSum),
        text_of(torch::ones({2}, at::kInt), ReduceOp::kMean),
        text_of(torch::ones({2}, at::kComplexFloat), ReduceOp::kMax),
        text_of(torch::ones({2}, at::kMeta), ReduceOp::kSum),
        text_of(torch::ones({2}, at::kComplexFloat), ReduceOp::kProduct),
        thrown_text<tandem::ConfigError>([&] {
          group.broadcast_async(torch::ones({2}), 1);
        }).value_or("nothing thrown"),
    };
  })[0];
  CHECK(missing_parts(texts[0], {"contiguous", "[3, 2]", "[1, 3]"}).empty());
  CHECK(missing_parts(texts[1], {"floating", "Int"}).empty());
  CHECK(missing_parts(texts[2], {"ordered", "ComplexFloat"}).empty());
  CHECK(missing_parts(texts[3], {"device", "meta"}).empty());
  CHECK(missing_parts(texts[4], {"product", "ComplexFloat"}).empty());
  CHECK(missing_parts(texts[5], {"root", "below 1", "got 1"}).empty());
}

TEST_CASE("barrier lets nobody pass before all have come", "[comm]") {
  std::atomic<int> num_come{0};
  const auto seen = run_ranks(3, [&](RankContext& context) {
    ++num_come;
    context.group()->barrier();
    return num_come.load();
  });
  CHECK(seen == std::vector<int>{3, 3, 3});
}
