#include <tandem/optim/post_local_sgd_optimizer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/backend.h>
#include <tandem/core/errors.h>
#include <tandem/ddp/comm_hooks.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/optim/periodic_model_averager.h>
#include <tandem/testing/rank_threads.h>

#include "optimizer_kinds.h"
#include "tandem_catch.h"
#include "tensors.h"
#include "text.h"
#include "warnings.h"

namespace tandem::test {
namespace {

namespace to = torch::optim;

using testing::RankContext;
using testing::run_ranks;

constexpr double kRate = 0.1;

at::Tensor loss_of(ThreeLayersImpl& net, int64_t step, int64_t rank) {
  constexpr int64_t seeds_per_step = 100;
  const auto seed = static_cast<uint64_t>(step * seeds_per_step + rank);
  return net.forward(normal({4, 2}, seed)).square().mean();
}

/// What a rank does.
struct Schedule {
  int64_t period;
  int64_t warmup_steps;
  int64_t num_steps;
};

/// The same training as ranks, in one thread: every rank's parameters after
/// each step. [steps, ranks, numel]
at::Tensor expected_steps(int64_t world_size, const Schedule& schedule) {
  std::vector<ThreeLayers> nets(static_cast<size_t>(world_size));
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < schedule.num_steps; ++step) {
    const torch::NoGradGuard no_grad;
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> gradients;
    for (int64_t rank = 0; rank < world_size; ++rank) {
      auto& net = *nets[static_cast<size_t>(rank)];
      net.zero_grad();
      {
        const torch::AutoGradMode with_grad(true);
        loss_of(net, step, rank).backward();
      }
      std::vector<at::Tensor> flat;
      for (const auto& gradient : grads_of(net)) {
        flat.push_back(gradient.flatten());
      }
      gradients.push_back(torch::cat(flat));
      values.push_back(flat_values(net));
    }
    auto gradient = torch::stack(gradients);
    if (step < schedule.warmup_steps) {
      gradient = gradient.mean(0, /*keepdim=*/true);
    }
    auto now = torch::stack(values) - kRate * gradient;
    const int64_t local_steps = step - schedule.warmup_steps;
    if (local_steps >= 0 && local_steps % schedule.period == 0) {
      now = now.mean(0, /*keepdim=*/true).expand_as(now);
    }
    now = now.contiguous();
    for (int64_t rank = 0; rank < world_size; ++rank) {
      torch::nn::utils::vector_to_parameters(
          now[rank].clone(),
          nets[static_cast<size_t>(rank)]->parameters());
    }
    after.push_back(now);
  }
  return torch::stack(after);
}

/// As a rank: its parameters after each step. [steps, numel]
at::Tensor train_locally(const RankContext& context, const Schedule& schedule) {
  ThreeLayers net;
  DistributedDataParallel model(net);
  model->register_comm_hook(ddp::post_local_sgd_hook(
      ddp::PostLocalSGDOptions().start_step(schedule.warmup_steps)));
  PostLocalSGDOptimizer optimizer(
      std::make_unique<to::SGD>(net->parameters(), to::SGDOptions(kRate)),
      std::make_shared<PeriodicModelAverager>(
          schedule.period,
          schedule.warmup_steps));
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < schedule.num_steps; ++step) {
    optimizer.zero_grad();
    constexpr int64_t seeds_per_step = 100;
    const auto seed =
        static_cast<uint64_t>(step * seeds_per_step + context.rank());
    model(normal({4, 2}, seed)).square().mean().backward();
    optimizer.step();
    after.push_back(flat_values(*net));
  }
  return torch::stack(after);
}

TEST_CASE(
    "post-local SGD trains together, then apart, and meets",
    "[optim][LS-01]") {
  const Schedule schedule{4, 10, 20};
  for (const int64_t world_size : {1, 2, 3}) {
    const auto expected = expected_steps(world_size, schedule);
    const auto actual = run_ranks(world_size, [&](RankContext& context) {
      return train_locally(context, schedule);
    });
    const auto all = torch::stack(actual, /*dim=*/1);
    CHECK(is_close(all, expected));
    for (const int64_t step : {0, 9, 10, 14, 18}) {
      for (const auto& rank : actual) {
        CHECK(is_equal(rank[step], actual[0][step]));
      }
    }
    if (world_size > 1) {
      for (const int64_t step : {11, 13, 15, 19}) {
        CHECK_FALSE(is_close(actual[0][step], actual[1][step]));
      }
    }
  }
}

TEST_CASE(
    "local SGD of period 1 is as averaging the gradients",
    "[optim][LS-02]") {
  const Schedule local{1, 0, 4};
  const Schedule averaged{1, 4, 4};
  for (const int64_t world_size : {1, 2, 3}) {
    const auto expected = expected_steps(world_size, averaged);
    const auto actual = run_ranks(world_size, [&](RankContext& context) {
      return train_locally(context, local);
    });
    CHECK(is_close(torch::stack(actual, /*dim=*/1), expected));
  }
}

TEST_CASE(
    "post-local hook averages over the subgroup from its start on",
    "[optim][LS-01]") {
  const auto results = run_ranks(2, [](RankContext& context) {
    ThreeLayers net;
    DistributedDataParallel model(net);
    // A group of one.
    const auto hook = ddp::post_local_sgd_hook(
        ddp::PostLocalSGDOptions().start_step(1).subgroup(
            comm::connect_group({})));
    model->register_comm_hook(hook);
    std::vector<at::Tensor> gradients;
    for (int64_t step = 0; step < 2; ++step) {
      net->zero_grad();
      const auto input = normal({4, 2}, static_cast<uint64_t>(context.rank()));
      model(input).square().mean().backward();
      gradients.push_back(net->third->weight.grad().clone());
    }
    TORCH_CHECK(contains(
        hook->describe(),
        "post_local_sgd(start_step=1, subgroup=true)"));
    return gradients;
  });
  CHECK(is_equal(results[0][0], results[1][0]));
  CHECK_FALSE(is_close(results[0][1], results[1][1]));
  CHECK(is_close((results[0][1] + results[1][1]) / 2, results[0][0]));
}

TEST_CASE("post-local hook does not start before 0", "[optim][LS-01]") {
  CHECK_THROWS_AS(
      ddp::post_local_sgd_hook(ddp::PostLocalSGDOptions().start_step(-1)),
      ConfigError);
}

/// Over one parameter, in a world of one.
PostLocalSGDOptimizer make_optimizer(const at::Tensor& parameter) {
  return PostLocalSGDOptimizer(
      std::make_unique<to::SGD>(
          std::vector<at::Tensor>{parameter},
          to::SGDOptions(kRate).momentum(0.5)),
      std::make_shared<PeriodicModelAverager>(
          /*period=*/2,
          /*warmup_steps=*/0,
          comm::connect_group({})));
}

void step_on(const at::Tensor& parameter, to::Optimizer& optimizer) {
  optimizer.zero_grad();
  parameter.square().sum().backward();
  optimizer.step();
}

std::string saved_bytes(const to::Optimizer& optimizer) {
  std::ostringstream stream;
  torch::save(optimizer, stream);
  return stream.str();
}

void load_saved(const std::string& bytes, to::Optimizer& optimizer) {
  std::istringstream stream(bytes);
  torch::load(optimizer, stream);
}

TEST_CASE("averager's step is part of the saved state", "[optim][LS-01]") {
  const auto parameter = torch::ones({3}).requires_grad_();
  auto optimizer = make_optimizer(parameter);
  step_on(parameter, optimizer);
  step_on(parameter, optimizer);
  step_on(parameter, optimizer);
  const auto bytes = saved_bytes(optimizer);
  auto other = make_optimizer(parameter);
  load_saved(bytes, other);
  CHECK(other.averager().step() == 3);
  CHECK(other.inner().state().size() == 1);
  // The optimizer inside reads it too.
  to::SGD plain({parameter}, to::SGDOptions(1));
  load_saved(bytes, plain);
  CHECK(plain.state().size() == 1);
  CHECK(plain.param_groups()[0].options().get_lr() == kRate);
}

TEST_CASE("missing step begins at 0 with a warning", "[optim][LS-01]") {
  expect_warning("expected the averager's step, got none");
  const auto parameter = torch::ones({3}).requires_grad_();
  to::SGD plain({parameter}, to::SGDOptions(kRate).momentum(0.5));
  step_on(parameter, plain);
  auto optimizer = make_optimizer(parameter);
  step_on(parameter, optimizer);
  CHECK(optimizer.averager().step() == 1);
  load_saved(saved_bytes(plain), optimizer);
  CHECK(optimizer.averager().step() == 0);
  CHECK(count_warnings("expected the averager's step, got none") == 1);
}

TEST_CASE(
    "schedules, groups and closures reach the optimizer inside",
    "[optim][LS-01]") {
  const auto first = torch::ones({3}).requires_grad_();
  const auto second = torch::ones({2}).requires_grad_();
  auto optimizer = make_optimizer(first);
  optimizer.add_param_group({{second}, std::make_unique<to::SGDOptions>(0.3)});
  to::StepLR schedule(optimizer, /*step_size=*/1, /*gamma=*/0.5);
  schedule.step(); // the first one leaves the rate as it is
  schedule.step();
  int num_calls = 0;
  const auto loss = optimizer.step([&] {
    ++num_calls;
    optimizer.zero_grad();
    auto sum = first.sum() + second.sum();
    sum.backward();
    return sum;
  });
  CHECK(num_calls == 1);
  CHECK(loss.item<double>() == 5);
  CHECK(first.allclose(torch::full({3}, 0.95)));
  CHECK(second.allclose(torch::full({2}, 0.85)));
}

TEST_CASE("nothing is wrapped without optimizer or averager", "[optim]") {
  const auto averager =
      std::make_shared<PeriodicModelAverager>(1, 0, comm::connect_group({}));
  CHECK_THROWS_AS(PostLocalSGDOptimizer(nullptr, averager), ConfigError);
  CHECK_THROWS_AS(
      PostLocalSGDOptimizer(
          std::make_unique<to::SGD>(
              std::vector<at::Tensor>{torch::ones({1})},
              to::SGDOptions(1)),
          nullptr),
      ConfigError);
}

} // namespace
} // namespace tandem::test
