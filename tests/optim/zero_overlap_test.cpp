#include <cstdint>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/join.h>
#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/optim/zero_redundancy_optimizer.h>
#include <tandem/testing/rank_threads.h>

#include "optimizer_kinds.h"
#include "tandem_catch.h"
#include "tensors.h"
#include "text.h"

namespace tandem::test {
namespace {

namespace to = torch::optim;

using testing::RankContext;
using testing::run_ranks;
using testing::try_ranks;

constexpr int64_t kOverlapSteps = 4;

/// Parameters after steps under DistributedDataParallel. [steps, numel]
at::Tensor train_wrapped(
    const RankContext& context,
    const OptimizerFactory& make,
    int64_t chunk_bytes,
    bool is_overlapped) {
  ThreeLayers net;
  DistributedDataParallel model(
      net,
      DistributedDataParallelOptions().first_bucket_bytes(1).bucket_cap_bytes(
          100));
  ZeroRedundancyOptimizer optimizer(
      net->parameters(),
      make,
      ZeroRedundancyOptions().overlap_chunk_bytes(chunk_bytes));
  int64_t num_ahead = 0;
  if (is_overlapped) {
    model->set_on_gradient([&](const NamedTensor& parameter) {
      ++num_ahead;
      optimizer.begin_step(parameter.tensor);
    });
  }
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < kOverlapSteps; ++step) {
    const auto seed = static_cast<uint64_t>(10 * step + context.rank());
    optimizer.zero_grad();
    model(normal({4, 2}, seed)).square().mean().backward();
    optimizer.step();
    after.push_back(flat_values(*net));
  }
  model->set_on_gradient(nullptr);
  TORCH_CHECK(num_ahead == (is_overlapped ? 6 * kOverlapSteps : 0));
  return torch::stack(after);
}

TEST_CASE(
    "step that is taken ahead in backward is the same step",
    "[optim][ZR-01]") {
  for (const auto& kind : optimizer_kinds()) {
    INFO(kind.name);
    for (const int64_t world_size : {1, 2, 3}) {
      const auto train = [&](int64_t chunk_bytes, bool is_overlapped) {
        return run_ranks(world_size, [&](RankContext& context) {
          return train_wrapped(context, kind.make, chunk_bytes, is_overlapped);
        });
      };
      const auto expected = train(1, false);
      for (const int64_t chunk_bytes : {1, 200, 1 << 20}) {
        for (const auto& actual : train(chunk_bytes, true)) {
          CHECK(is_equal(actual, expected[0]));
        }
      }
    }
  }
}

TEST_CASE("parameters that do not come ahead are stepped too", "[optim]") {
  const auto make = optimizer_factory<to::Adam>(to::AdamOptions(0.05));
  const auto expected = plain_steps(make, 2);
  const auto results = run_ranks(3, [&](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(net->parameters(), make);
    std::vector<at::Tensor> after;
    for (int64_t step = 0; step < 2; ++step) {
      optimizer.zero_grad();
      backward(*net, step);
      optimizer.begin_step(net->third->weight);
      optimizer.begin_step(net->first->bias);
      optimizer.begin_step(torch::ones({1})); // not one of its own
      optimizer.step();
      after.push_back(flat_values(*net));
    }
    return torch::stack(after);
  });
  for (const auto& actual : results) {
    CHECK(is_equal(actual, expected));
  }
}

TEST_CASE("step is taken ahead once and not in a join", "[optim]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    backward(*net, 0);
    comm::with_join({&optimizer}, [&] {
      TORCH_CHECK(contains(
          message_thrown_by([&] { optimizer.begin_step(net->first->bias); }),
          "expected no Join"));
    });
    optimizer.begin_step(net->first->bias);
    optimizer.begin_step(net->first->bias);
  });
  for (const auto& error : errors) {
    CHECK(contains(message_of(error), "expected each parameter once"));
  }
}

TEST_CASE("a group added after a step was begun is refused", "[optim]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    backward(*net, 0);
    optimizer.begin_step(net->first->bias);
    const torch::optim::OptimizerParamGroup more(
        {torch::ones({2}, at::kDouble)});
    TORCH_CHECK(contains(
        message_thrown_by([&] { optimizer.add_param_group(more); }),
        "Add groups between step"));
    static_cast<to::Optimizer&>(optimizer).add_param_group(more);
    optimizer.step();
  });
  for (const auto& error : errors) {
    REQUIRE(error);
    CHECK(contains(message_of(error), "Add groups between step"));
  }
}

TEST_CASE("ranks choose one size of chunks", "[optim][ZR-05]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    const ZeroRedundancyOptimizer optimizer(
        std::vector<at::Tensor>{torch::ones({2})},
        optimizer_factory<to::Adam>(),
        ZeroRedundancyOptions().overlap_chunk_bytes(1 + context.rank()));
  });
  for (const auto& error : errors) {
    CHECK(contains(message_of(error), "overlap_chunk_bytes"));
  }
}

} // namespace
} // namespace tandem::test
