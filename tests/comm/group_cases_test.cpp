#include <tandem/comm/process_group.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/coalesced.h>
#include <tandem/comm/monitored_barrier.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using comm::ReduceOp;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::TemporaryDirectory;
using tandem::testing::thrown_text;

namespace {

/// Each rank's error from a barrier that `absent` do not come to; empty without
/// one.
std::vector<std::string> texts_of_barrier(
    int64_t world_size,
    const std::vector<int64_t>& absent) {
  return run_ranks(world_size, [&](RankContext& context) -> std::string {
    const auto stays_away =
        std::find(absent.begin(), absent.end(), context.rank()) != absent.end();
    if (stays_away) {
      return "";
    }
    return thrown_text<tandem::TimeoutError>(
               [&] { comm::monitored_barrier(*context.group(), 300ms); })
        .value_or("");
  });
}

/// Small whole numbers, different in every rank and element: exact in every
/// dtype, even their products.
at::Tensor small_numbers(int64_t rank, int64_t size, at::ScalarType dtype) {
  return (torch::arange(size).remainder(3 + rank) % 3 + 1).to(dtype);
}

at::Tensor reduce_all(
    int64_t world_size,
    int64_t size,
    at::ScalarType dtype,
    ReduceOp op) {
  std::vector<at::Tensor> inputs;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    inputs.push_back(small_numbers(rank, size, at::kLong));
  }
  const auto all = torch::stack(inputs);
  switch (op) {
    case ReduceOp::kSum:
      return all.sum(0).to(dtype);
    case ReduceOp::kMean:
      return (all.sum(0).to(dtype) / world_size).to(dtype);
    case ReduceOp::kMin:
      return std::get<0>(all.min(0)).to(dtype);
    case ReduceOp::kMax:
      return std::get<0>(all.max(0)).to(dtype);
    case ReduceOp::kProduct:
      return all.prod(0).to(dtype);
  }
  return {};
}

/// Descriptions of those all-reduces that gave something else.
std::vector<std::string> wrong_all_reduces(RankContext& context) {
  std::vector<std::string> wrong;
  for (const auto dtype :
       {at::kChar,
        at::kByte,
        at::kInt,
        at::kLong,
        at::kHalf,
        at::kBFloat16,
        at::kFloat,
        at::kDouble}) {
    for (const auto op :
         {ReduceOp::kSum,
          ReduceOp::kMean,
          ReduceOp::kMin,
          ReduceOp::kMax,
          ReduceOp::kProduct}) {
      if (op == ReduceOp::kMean && !at::isFloatingType(dtype)) {
        continue;
      }
      for (const int64_t size : {0, 1, 7, 10, 1024, 1 << 20}) {
        auto tensor = small_numbers(context.rank(), size, dtype);
        context.group()->all_reduce(tensor, op);
        const auto expected = reduce_all(context.world_size(), size, dtype, op);
        if (!at::equal(tensor, expected)) {
          wrong.push_back(
              std::string(toString(dtype)) + " op " +
              std::to_string(static_cast<int>(op)) + " size " +
              std::to_string(size));
        }
      }
    }
  }
  return wrong;
}

} // namespace

TEST_CASE(
    "all-reduce is exact for every operation, dtype and size",
    "[comm][COL-01]") {
  for (const int64_t world_size : {2, 3, 4}) {
    CAPTURE(world_size);
    for (const auto& wrong : run_ranks(world_size, wrong_all_reduces)) {
      CHECK(wrong == std::vector<std::string>{});
    }
  }
}

TEST_CASE(
    "the number of collectives tells that a rank left one out",
    "[comm][COL-07]") {
  constexpr int num_collectives = 10;
  for (const int64_t world_size : {2, 3, 4}) {
    CAPTURE(world_size);
    const auto counts = run_ranks(world_size, [](RankContext& context) {
      auto& group = *context.group();
      const auto before = group.num_collectives();
      auto tensor = torch::ones({3});
      for (int i = 0; i < num_collectives; ++i) {
        group.all_reduce(tensor);
      }
      const auto equal = group.num_collectives() - before;
      if (context.rank() != 1) {
        // Ends with the group: rank 1 does not come.
        group.all_reduce_async(tensor);
      }
      return std::vector<int64_t>{equal, group.num_collectives() - before};
    });
    for (int64_t rank = 0; rank < world_size; ++rank) {
      const int64_t left_out = rank == 1 ? 0 : 1;
      CHECK(
          counts[rank] ==
          std::vector<int64_t>{num_collectives, num_collectives + left_out});
    }
  }
}

TEST_CASE("1000 queued collectives keep their order", "[comm][COL-02]") {
  constexpr int num_collectives = 1000;
  for (const int64_t world_size : {2, 3, 4}) {
    CAPTURE(world_size);
    const auto results = run_ranks(world_size, [](RankContext& context) {
      auto& group = *context.group();
      std::vector<at::Tensor> tensors;
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      for (int i = 0; i < num_collectives; ++i) {
        tensors.push_back(torch::full({4}, i + context.rank(), at::kLong));
        works.push_back(group.all_reduce_async(tensors.back()));
        tensors.push_back(torch::full({4}, i + context.rank(), at::kLong));
        works.push_back(
            group.broadcast_async(tensors.back(), i % group.size()));
      }
      for (const auto& work : works) {
        group.wait(work, "a queued collective");
      }
      return torch::stack(tensors);
    });
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < num_collectives; ++i) {
      expected.push_back(i * world_size + world_size * (world_size - 1) / 2);
      expected.push_back(i + i % world_size);
    }
    const auto column = torch::tensor(expected, at::kLong).unsqueeze(1);
    for (const auto& result : results) {
      CHECK(at::equal(result, column.expand_as(result)));
    }
  }
}

TEST_CASE(
    "barrier waits for whoever comes last, whoever that is",
    "[comm][COL-03]") {
  const TemporaryDirectory directory;
  const auto path_of = [&](int64_t round, int64_t rank) {
    return directory.path() /
        (std::to_string(round) + "-" + std::to_string(rank));
  };
  for (const int64_t world_size : {2, 3, 4}) {
    const auto saw_all = run_ranks(world_size, [&](RankContext& context) {
      bool all = true;
      for (int64_t late = 0; late < world_size; ++late) {
        if (context.rank() == late) {
          std::this_thread::sleep_for(300ms); // what the case is about
        }
        const auto round = world_size * world_size + late;
        std::ofstream(path_of(round, context.rank())) << "here";
        context.group()->barrier();
        for (int64_t rank = 0; rank < world_size; ++rank) {
          all = all && std::filesystem::exists(path_of(round, rank));
        }
      }
      return all;
    });
    CHECK(saw_all == std::vector<bool>(world_size, true));
  }
}

TEST_CASE("monitored barrier names all who are absent", "[comm][COL-04]") {
  for (const int64_t world_size : {2, 3, 4}) {
    for (const auto& text : texts_of_barrier(world_size, {})) {
      CHECK(text.empty());
    }
    const auto texts = texts_of_barrier(world_size, {1});
    CHECK(missing_parts(
              texts[0],
              {"monitored barrier", "300 ms", "no sign of rank 1."})
              .empty());
  }
  const auto texts = texts_of_barrier(4, {1, 3});
  for (const auto rank : {0, 2}) {
    CHECK(missing_parts(texts[rank], {"no sign of ranks 1 and 3"}).empty());
  }
}

TEST_CASE(
    "a group is usable after a monitored barrier that failed",
    "[comm][COL-04]") {
  const auto sums = run_ranks(2, [](RankContext& context) {
    auto& group = *context.group();
    bool failed = false;
    if (context.rank() == 0) {
      failed = thrown_text<tandem::TimeoutError>([&] {
                 comm::monitored_barrier(group, 100ms);
               }).has_value();
      group.store()->set("failed", std::vector<uint8_t>{1});
    } else {
      group.store()->wait({"failed"});
      comm::monitored_barrier(group, 100ms); // late: all have come
    }
    comm::monitored_barrier(group);
    auto sum = torch::full({1}, context.rank() + 1);
    group.all_reduce(sum);
    return sum.item<int64_t>() + (failed ? 10 : 0);
  });
  CHECK(sums == std::vector<int64_t>{13, 3});
}

TEST_CASE("coalesced broadcast gives the root's values", "[comm][COL-05]") {
  constexpr int64_t num_chunks = 5;
  constexpr int64_t num_numbers = 60;
  for (const int64_t world_size : {1, 2, 3, 4}) {
    for (int64_t root = 0; root < world_size; ++root) {
      CAPTURE(world_size, root);
      const auto values_of = [&](int64_t rank) {
        std::vector<at::Tensor> tensors;
        for (const auto dtype : {at::kFloat, at::kHalf, at::kLong}) {
          const auto numbers =
              (torch::arange(num_numbers) + rank * num_numbers).to(dtype);
          for (const auto& chunk : numbers.chunk(num_chunks)) {
            tensors.push_back(chunk.clone());
          }
        }
        // Of any layout, and none at all.
        tensors.push_back(torch::full({2, 3}, rank + 1.0).t());
        tensors.push_back(torch::empty({0}));
        tensors.push_back(torch::full({}, rank + 1, at::kBool));
        return tensors;
      };
      const auto results = run_ranks(world_size, [&](RankContext& context) {
        const auto tensors = values_of(context.rank());
        comm::broadcast_coalesced(*context.group(), tensors, root, 256);
        return tensors;
      });
      const auto expected = values_of(root);
      for (const auto& tensors : results) {
        for (size_t i = 0; i < expected.size(); ++i) {
          CHECK(at::equal(tensors[i], expected[i]));
        }
      }
    }
  }
}
