#include <cstdint>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/join.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/optim/zero_redundancy_optimizer.h>
#include <tandem/testing/rank_threads.h>

#include "optimizer_kinds.h"
#include "tandem_catch.h"
#include "tensors.h"

namespace tandem::test {
namespace {

namespace to = torch::optim;

using testing::RankContext;
using testing::run_ranks;

/// Rank r trains on 2 + 2r batches, at a rate that falls; what all ranks have
/// in the end.
std::vector<at::Tensor> train_uneven(
    int64_t world_size,
    const OptimizerFactory& make,
    bool is_sharded) {
  return run_ranks(world_size, [&](RankContext& context) {
    ThreeLayers net;
    DistributedDataParallel model(net);
    std::unique_ptr<to::Optimizer> optimizer;
    std::vector<comm::Joinable*> joinables{model.get()};
    if (is_sharded) {
      auto sharded =
          std::make_unique<ZeroRedundancyOptimizer>(net->parameters(), make);
      joinables.push_back(sharded.get());
      optimizer = std::move(sharded);
    } else {
      optimizer = make(one_group(*net));
    }
    to::StepLR schedule(*optimizer, /*step_size=*/1, /*gamma=*/0.8);
    comm::with_join(joinables, [&] {
      for (int64_t step = 0; step < 2 + 2 * context.rank(); ++step) {
        const auto seed = static_cast<uint64_t>(10 * step + context.rank());
        optimizer->zero_grad();
        model(normal({4, 2}, seed)).square().mean().backward();
        optimizer->step();
        schedule.step();
      }
    });
    return flat_values(*net);
  });
}

TEST_CASE(
    "sharded optimizer trains on uneven inputs as the plain one",
    "[optim][ZR-06][JN-08]") {
  for (const auto& kind : optimizer_kinds()) {
    INFO(kind.name);
    for (const int64_t world_size : {1, 2, 3, 4}) {
      const auto expected = train_uneven(world_size, kind.make, false);
      const auto actual = train_uneven(world_size, kind.make, true);
      for (int64_t rank = 0; rank < world_size; ++rank) {
        CHECK(is_equal(actual[rank], expected[0]));
      }
    }
  }
}

TEST_CASE("joined rank keeps its own gradients", "[optim][ZR-06]") {
  run_ranks(2, [](RankContext& context) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::SGD>(to::SGDOptions(0.1)));
    backward(*net, context.rank());
    const auto before = snapshot(grads_of(*net));
    comm::with_join({&optimizer}, [&] {
      if (context.rank() == 0) {
        optimizer.step();
      }
    });
    TORCH_CHECK(are_close(grads_of(*net), before, 0));
  });
}

TEST_CASE(
    "parameter that has no gradient stays on a joined rank",
    "[optim][ZR-06]") {
  const auto values = run_ranks(2, [](RankContext& context) {
    // One for each rank.
    const auto used = torch::ones({2}).requires_grad_();
    const auto unused = torch::ones({3}).requires_grad_();
    ZeroRedundancyOptimizer optimizer(
        std::vector<at::Tensor>{used, unused},
        optimizer_factory<to::AdamW>(to::AdamWOptions(0.5)));
    comm::with_join({&optimizer}, [&] {
      if (context.rank() == 1) {
        used.sum().backward();
        optimizer.step();
      }
    });
    return torch::cat({used, unused}).detach();
  });
  for (const auto& value : values) {
    CHECK(value.narrow(0, 0, 2).lt(1).all().item<bool>());
    CHECK(value.narrow(0, 2, 3).equal(torch::ones({3})));
  }
}

} // namespace
} // namespace tandem::test
