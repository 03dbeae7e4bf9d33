#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
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

/// What a training wrote after two steps.
struct Saved {
  at::Tensor parameters;
  std::string optimizer;
};

std::string bytes_of(const to::Optimizer& optimizer) {
  std::ostringstream stream;
  torch::save(optimizer, stream);
  return stream.str();
}

void load_bytes(const std::string& bytes, to::Optimizer& optimizer) {
  std::istringstream stream(bytes);
  torch::load(optimizer, stream);
}

/// Two more steps from there.
at::Tensor go_on(
    const Saved& saved,
    ThreeLayersImpl& net,
    to::Optimizer& optimizer) {
  {
    const torch::NoGradGuard no_grad;
    // They become views of it.
    torch::nn::utils::vector_to_parameters(
        saved.parameters.clone(),
        net.parameters());
  }
  load_bytes(saved.optimizer, optimizer);
  return take_steps(net, optimizer, 2, 2);
}

Saved save_plain(const OptimizerFactory& make) {
  ThreeLayers net;
  const auto optimizer = make(one_group(*net));
  take_steps(*net, *optimizer, 0, 2);
  return {flat_values(*net), bytes_of(*optimizer)};
}

/// What the last rank has when it consolidates.
Saved save_sharded(const OptimizerFactory& make, int64_t world_size) {
  return run_ranks(
             world_size,
             [&](RankContext& context) {
               ThreeLayers net;
               ZeroRedundancyOptimizer optimizer(net->parameters(), make);
               take_steps(*net, optimizer, 0, 2);
               const int64_t last = world_size - 1;
               optimizer.consolidate_state_dict(last);
               Saved saved{flat_values(*net), ""};
               if (context.rank() == last) {
                 saved.optimizer = bytes_of(optimizer);
               }
               return saved;
             })
      .back();
}

TEST_CASE("consolidated state continues the plain optimizer", "[optim]") {
  for (const auto& kind : optimizer_kinds()) {
    INFO(kind.name);
    const auto expected = plain_steps(kind.make, 4).narrow(0, 2, 2);
    for (const int64_t world_size : {1, 2, 3}) {
      const auto saved = save_sharded(kind.make, world_size);
      ThreeLayers net;
      const auto plain = kind.make(one_group(*net));
      CHECK(is_equal(go_on(saved, *net, *plain), expected));
    }
  }
}

TEST_CASE("saved state continues in a world of any size", "[optim]") {
  for (const auto& kind : optimizer_kinds()) {
    INFO(kind.name);
    const auto expected = plain_steps(kind.make, 4).narrow(0, 2, 2);
    for (const auto& saved :
         {save_plain(kind.make),
          save_sharded(kind.make, 1),
          save_sharded(kind.make, 3)}) {
      for (const int64_t world_size : {1, 2, 4}) {
        const auto results = run_ranks(world_size, [&](RankContext&) {
          ThreeLayers net;
          ZeroRedundancyOptimizer optimizer(net->parameters(), kind.make);
          auto parameters = go_on(saved, *net, optimizer);
          const auto rank = optimizer.join_process_group()->rank();
          TORCH_CHECK(
              optimizer.local_optimizer().state().size() ==
              optimizer.shard(rank).size());
          return parameters;
        });
        for (const auto& actual : results) {
          CHECK(is_equal(actual, expected));
        }
      }
    }
  }
}

TEST_CASE("options come from the saved state", "[optim]") {
  ThreeLayers net;
  to::SGD plain(net->parameters(), to::SGDOptions(0.25).momentum(0.5));
  const auto bytes = bytes_of(plain);
  run_ranks(2, [&](RankContext&) {
    ThreeLayers other;
    ZeroRedundancyOptimizer optimizer(
        other->parameters(),
        optimizer_factory<to::SGD>(to::SGDOptions(1)));
    load_bytes(bytes, optimizer);
    const auto& options =
        static_cast<to::SGDOptions&>(optimizer.param_groups()[0].options());
    TORCH_CHECK(options.lr() == 0.25 && options.momentum() == 0.5);
  });
}

TEST_CASE("share of the state is not saved for the whole", "[optim]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    take_steps(*net, optimizer, 0, 1);
    optimizer.consolidate_state_dict(0);
    if (context.rank() == 0) {
      TORCH_CHECK(!bytes_of(optimizer).empty());
      take_steps(*net, optimizer, 1, 1); // it is old from now on
    } else {
      TORCH_CHECK(contains(
          message_thrown_by([&] { bytes_of(optimizer); }),
          "consolidate_state_dict(1)"));
      take_steps(*net, optimizer, 1, 1);
    }
    bytes_of(optimizer);
  });
  for (const auto& error : errors) {
    CHECK(contains(message_of(error), "expected the whole state"));
  }
}

TEST_CASE("state goes to no rank that does not exist", "[optim]") {
  run_ranks(2, [](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    for (const int64_t rank : {-1, 2}) {
      TORCH_CHECK(contains(
          message_thrown_by([&] { optimizer.consolidate_state_dict(rank); }),
          "expected a rank from 0 to 1, got " + std::to_string(rank)));
    }
  });
}

} // namespace
} // namespace tandem::test
