#include <tandem/optim/zero_redundancy_optimizer.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
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
using to::OptimizerParamGroup;

constexpr int64_t kSteps = 3;

template <typename Function>
void expect_on_every_rank(
    int64_t world_size,
    const at::Tensor& expected,
    const Function& function) {
  for (const auto& actual : run_ranks(world_size, function)) {
    CHECK(is_equal(actual, expected));
  }
}

TEST_CASE("sharded optimizer steps as the plain one", "[optim][ZR-01]") {
  for (const auto& kind : optimizer_kinds()) {
    INFO(kind.name);
    const auto expected = plain_steps(kind.make, kSteps);
    for (const int64_t world_size : {1, 2, 3, 4}) {
      expect_on_every_rank(world_size, expected, [&](RankContext&) {
        ThreeLayers net;
        ZeroRedundancyOptimizer optimizer(net->parameters(), kind.make);
        return take_steps(*net, optimizer, 0, kSteps);
      });
    }
  }
}

TEST_CASE("each rank has the state of its share only", "[optim][ZR-01]") {
  const auto num_states = run_ranks(3, [](RankContext& context) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    take_steps(*net, optimizer, 0, 1);
    const auto& state = optimizer.local_optimizer().state();
    const auto shard = optimizer.shard(context.rank());
    TORCH_CHECK(state.size() == shard.size());
    for (const auto& parameter : shard) {
      TORCH_CHECK(state.count(parameter.unsafeGetTensorImpl()) == 1);
    }
    return state.size();
  });
  CHECK(num_states[0] + num_states[1] + num_states[2] == 6);
}

/// Two groups, for weights and biases, each with a weight decay of its own.
std::vector<OptimizerParamGroup> two_groups(const torch::nn::Module& net) {
  std::vector<at::Tensor> weights;
  std::vector<at::Tensor> biases;
  for (const auto& parameter : net.parameters()) {
    (parameter.dim() == 1 ? biases : weights).push_back(parameter);
  }
  return {
      OptimizerParamGroup(weights),
      OptimizerParamGroup(
          biases,
          std::make_unique<to::AdamWOptions>(
              to::AdamWOptions(0.05).weight_decay(0.3)))};
}

TEST_CASE("groups may come up front or later", "[optim][ZR-02]") {
  const auto make =
      optimizer_factory<to::AdamW>(to::AdamWOptions(0.05).weight_decay(0));
  ThreeLayers plain_net;
  const auto plain = make(two_groups(*plain_net));
  const auto expected = take_steps(*plain_net, *plain, 0, kSteps);
  for (const int64_t world_size : {1, 2, 3, 4}) {
    expect_on_every_rank(world_size, expected, [&](RankContext&) {
      ThreeLayers net;
      ZeroRedundancyOptimizer optimizer(two_groups(*net), make);
      return take_steps(*net, optimizer, 0, kSteps);
    });
    expect_on_every_rank(world_size, expected, [&](RankContext&) {
      ThreeLayers net;
      const auto groups = two_groups(*net);
      ZeroRedundancyOptimizer optimizer(groups[0].params(), make);
      optimizer.add_param_group(groups[1]);
      return take_steps(*net, optimizer, 0, kSteps);
    });
    // Nobody tells the sharded one.
    expect_on_every_rank(world_size, expected, [&](RankContext&) {
      ThreeLayers net;
      const auto groups = two_groups(*net);
      ZeroRedundancyOptimizer optimizer(groups[0].params(), make);
      static_cast<to::Optimizer&>(optimizer).add_param_group(groups[1]);
      return take_steps(*net, optimizer, 0, kSteps);
    });
  }
}

TEST_CASE("group that comes after steps is shared out", "[optim][ZR-02]") {
  const auto make = optimizer_factory<to::AdamW>(to::AdamWOptions(0.05));
  const auto run = [](ThreeLayersImpl& net, auto& optimizer) {
    take_steps(net, optimizer, 0, 2);
    optimizer.add_param_group(two_groups(net)[1]);
    return take_steps(net, optimizer, 2, 2);
  };
  ThreeLayers plain_net;
  const auto plain =
      make({OptimizerParamGroup(two_groups(*plain_net)[0].params())});
  expect_on_every_rank(3, run(*plain_net, *plain), [&](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(two_groups(*net)[0].params(), make);
    return run(*net, optimizer);
  });
}

TEST_CASE("shares are of one size where sizes allow", "[optim][ZR-03]") {
  for (const int64_t world_size : {1, 2, 3, 4}) {
    run_ranks(world_size, [&](RankContext&) {
      std::vector<at::Tensor> parameters;
      for (int64_t i = 0; i < world_size; ++i) {
        for (const int64_t numel : {3, 7, 5, 9}) {
          parameters.push_back(torch::zeros({numel}));
        }
      }
      const ZeroRedundancyOptimizer optimizer(
          parameters,
          optimizer_factory<to::Adam>());
      for (int64_t rank = 0; rank < world_size; ++rank) {
        int64_t num_elems = 0;
        for (const auto& parameter : optimizer.shard(rank)) {
          num_elems += parameter.numel();
        }
        TORCH_CHECK(num_elems == 24, num_elems, " on rank ", rank);
      }
    });
  }
}

TEST_CASE("rank without parameters takes part", "[optim][ZR-03]") {
  const auto values = run_ranks(3, [](RankContext&) {
    const auto parameter = torch::ones({4}).requires_grad_();
    ZeroRedundancyOptimizer optimizer(
        std::vector<at::Tensor>{parameter},
        optimizer_factory<to::SGD>(to::SGDOptions(0.5)));
    parameter.sum().backward();
    optimizer.step();
    return parameter.detach();
  });
  for (const auto& value : values) {
    CHECK(value.equal(torch::full({4}, 0.5)));
  }
}

/// What every rank's construction over `parameters(rank)` throws.
template <typename Parameters>
std::vector<std::string> messages_of_construction(
    const Parameters& parameters,
    const OptimizerFactory& make = optimizer_factory<to::Adam>()) {
  const auto errors = try_ranks(2, [&](RankContext& context) {
    const ZeroRedundancyOptimizer optimizer(
        std::vector<at::Tensor>(parameters(context.rank())),
        make);
  });
  std::vector<std::string> messages;
  for (const auto& error : errors) {
    messages.push_back(error ? message_of(error) : "");
  }
  return messages;
}

TEST_CASE("unfit parameters are refused", "[optim][ZR-05]") {
  using Tensors = std::vector<at::Tensor>;
  struct Unfit {
    Tensors parameters;
    std::string words;
  };
  const auto dense = torch::zeros({2});
  for (const auto& [parameters, words] : std::vector<Unfit>{
           {{}, "expected at least one, got none"},
           {{dense, torch::zeros({2}).to_sparse()}, "parameter 1 of group 0"},
           {{dense, torch::zeros({2}, at::kDouble)},
            "expected Float on cpu as the first parameter, got Double"},
           {{dense, at::Tensor()}, "got an undefined one"}}) {
    const auto& unfit = parameters;
    for (const auto& message :
         messages_of_construction([&](int64_t) { return unfit; })) {
      CHECK(contains(message, words));
    }
  }
  for (const auto& message : messages_of_construction(
           [&](int64_t) { return Tensors{dense}; },
           optimizer_factory<to::LBFGS>(to::LBFGSOptions(1)))) {
    CHECK(contains(message, "LBFGS"));
  }
}

TEST_CASE("ranks' groups must be alike", "[optim][ZR-05]") {
  using Tensors = std::vector<at::Tensor>;
  for (const auto& message : messages_of_construction([](int64_t rank) {
         return Tensors{torch::zeros({2}), torch::zeros({3 + rank})};
       })) {
    CHECK(contains(message, "parameter 1 of group 0"));
    CHECK(contains(message, "[3]"));
    CHECK(contains(message, "[4]"));
  }
  // One is unfit: the other does not wait for it.
  const auto messages = messages_of_construction([](int64_t rank) {
    return rank == 0 ? Tensors{} : Tensors{torch::zeros({2})};
  });
  CHECK(contains(messages[0], "got none"));
  CHECK(contains(messages[1], "rank 0"));
}

TEST_CASE("parameters cannot be removed", "[optim][ZR-05]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::Adam>());
    optimizer.param_groups()[0].params().pop_back();
    optimizer.step();
  });
  for (const auto& error : errors) {
    CHECK(
        contains(message_of(error), "expected 6 parameters as before, got 5"));
  }
}

/// Steps with a rate that falls after each second one.
at::Tensor steps_with_schedule(
    ThreeLayersImpl& net,
    torch::optim::Optimizer& optimizer) {
  to::StepLR schedule(optimizer, /*step_size=*/2, /*gamma=*/0.1);
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < 5; ++step) {
    after.push_back(take_steps(net, optimizer, step, 1));
    schedule.step();
  }
  return torch::cat(after);
}

TEST_CASE("schedulers work on the sharded optimizer", "[optim][ZR-06]") {
  const auto make =
      optimizer_factory<to::SGD>(to::SGDOptions(0.1).momentum(0.5));
  ThreeLayers plain_net;
  const auto plain = make(one_group(*plain_net));
  const auto expected = steps_with_schedule(*plain_net, *plain);
  for (const int64_t world_size : {1, 2, 3}) {
    expect_on_every_rank(world_size, expected, [&](RankContext&) {
      ThreeLayers net;
      ZeroRedundancyOptimizer optimizer(net->parameters(), make);
      return steps_with_schedule(*net, optimizer);
    });
  }
}

TEST_CASE("closure is called once and gives its loss", "[optim][ZR-06]") {
  const auto make = optimizer_factory<to::Adam>(to::AdamOptions(0.05));
  const auto expected = plain_steps(make, kSteps);
  for (const int64_t world_size : {1, 2, 3}) {
    expect_on_every_rank(world_size, expected, [&](RankContext&) {
      ThreeLayers net;
      ZeroRedundancyOptimizer optimizer(net->parameters(), make);
      std::vector<at::Tensor> after;
      for (int64_t step = 0; step < kSteps; ++step) {
        int num_calls = 0;
        at::Tensor seen;
        const torch::NoGradGuard no_grad; // the closure has gradients anyway
        const auto loss = optimizer.step([&] {
          ++num_calls;
          optimizer.zero_grad();
          return seen = backward(*net, step);
        });
        TORCH_CHECK(num_calls == 1 && loss.is_same(seen));
        after.push_back(flat_values(*net));
      }
      return torch::stack(after);
    });
  }
}

TEST_CASE("graph from before a step does not fit any more", "[optim][ZR-01]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    ThreeLayers net;
    ZeroRedundancyOptimizer optimizer(
        net->parameters(),
        optimizer_factory<to::SGD>(to::SGDOptions(0.1)));
    const auto loss = net->forward(normal({6, 2}, 0)).sum();
    backward(*net, 0);
    optimizer.step();
    loss.backward();
  });
  for (const auto& error : errors) {
    CHECK(contains(message_of(error), "modified by an inplace operation"));
  }
}

} // namespace
} // namespace tandem::test
