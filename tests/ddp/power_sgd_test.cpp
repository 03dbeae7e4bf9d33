#include <cstdint>
#include <tuple>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/ddp/comm_hooks.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "hook_steps.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using ddp::power_sgd_hook;
using ddp::PowerSGDOptions;
using testing::missing_parts;
using testing::RankContext;
using testing::run_ranks;
using testing::thrown_text;

constexpr bool kOffAndOn[] = {false, true};

/// As in oracles/power_sgd.py.
std::vector<at::Tensor> waves(int64_t rank, int64_t step) {
  const auto wave =
      torch::sin(torch::arange(36.0, at::kDouble) * (rank + 2) + step);
  return {wave.narrow(0, 0, 32).view({8, 4}), wave.narrow(0, 32, 4)};
}

struct PythonValues {
  bool feedback;
  bool warm;
  std::vector<double> values;
};

// Printed by oracles/power_sgd.py with PyTorch 2.15.0: elements 0, 13, 31 and
// 35 after two plain and three compressed steps.
const PythonValues kPythonValues[] = {
    {false, false, {-0.355707601, -0.856353687, -0.096283234, -0.084201827}},
    {false, true, {-0.585260662, -0.776731008, -0.104170027, -0.084201827}},
    {true, false, {-0.162489986, -1.168073231, 0.186102458, -0.084201827}},
    {true, true, {-0.303969041, -0.753726940, 0.073947193, -0.084201827}},
};

TEST_CASE(
    "PowerSGD gives what PyTorch's gives for the same seeds",
    "[ddp][hooks][HK-12]") {
  for (const auto& [feedback, warm, values] : kPythonValues) {
    const auto options = PowerSGDOptions()
                             .matrix_approximation_rank(2)
                             .start_iteration(2)
                             .min_compression_rate(1)
                             .use_error_feedback(feedback)
                             .warm_start(warm)
                             .random_seed(5);
    const auto results = run_ranks(2, [&](RankContext& context) {
      const auto hook = power_sgd_hook(options);
      const auto parameters = zeros_as_parameters({{8, 4}, {4}}, at::kDouble);
      hook->attach(context.group(), parameters);
      std::vector<at::Tensor> reduced;
      for (int64_t step = 0; step < 5; ++step) {
        reduced = reduce_with(
            *hook,
            context,
            parameters,
            waves(context.rank(), step));
      }
      return torch::cat({reduced[0].flatten(), reduced[1]});
    });
    const auto places = torch::tensor({0, 13, 31, 35});
    INFO(feedback << warm);
    CHECK(torch::allclose(
        results[0].index_select(0, places),
        torch::tensor(values, at::kDouble),
        1e-6,
        1e-8));
    CHECK(results[1].equal(results[0]));
  }
}

TEST_CASE(
    "PowerSGD of a gradient of its rank is the mean, and counts its bytes",
    "[ddp][hooks][HK-12]") {
  for (const bool batched : kOffAndOn) {
    for (const bool remembers : kOffAndOn) {
      const auto options = PowerSGDOptions()
                               .start_iteration(2)
                               .min_compression_rate(1)
                               .use_error_feedback(remembers)
                               .warm_start(remembers)
                               .batched(batched);
      const auto results = run_ranks(3, [&](RankContext& context) {
        const auto hook = power_sgd_hook(options);
        const auto parameters = zeros_as_parameters({{8, 8}});
        hook->attach(context.group(), parameters);
        const auto own = torch::full({8, 8}, 0.125 * (context.rank() + 1));
        at::Tensor reduced;
        for (int64_t step = 0; step < 4; ++step) {
          reduced = reduce_with(*hook, context, parameters, {own.clone()})[0];
        }
        return std::make_tuple(reduced, hook->traffic().bytes_sent);
      });
      for (const auto& [reduced, bytes_sent] : results) {
        CHECK(torch::allclose(reduced, torch::full({8, 8}, 0.25), 1e-5));
        // Twice all of it, then twice the factors.
        CHECK(bytes_sent == 2 * 4 * (64 + 16));
      }
    }
  }
}

TEST_CASE(
    "PowerSGD compresses matrices that are worth it and sends others as they "
    "are",
    "[ddp][hooks][HK-12]") {
  const auto results = run_ranks(2, [&](RankContext& context) {
    const auto hook = power_sgd_hook(PowerSGDOptions().start_iteration(2));
    // 2 * (10 + 20) < 200; a kernel [16, 4 * 9] in channels_last; 2 * (2 + 2)
    // is not less than 4; a vector; a scalar; nothing.
    auto parameters =
        zeros_as_parameters({{10, 20}, {16, 4, 3, 3}, {2, 2}, {7}, {}, {0, 3}});
    parameters[1].tensor =
        parameters[1].tensor.contiguous(at::MemoryFormat::ChannelsLast);
    hook->attach(context.group(), parameters);
    std::vector<at::Tensor> reduced;
    int64_t sent_before = 0;
    for (int64_t step = 0; step < 3; ++step) {
      std::vector<at::Tensor> gradients;
      for (const auto& parameter : parameters) {
        gradients.push_back(
            torch::full(parameter.tensor.sizes(), context.rank() + 1.0F));
      }
      sent_before = hook->traffic().bytes_sent;
      reduced = reduce_with(*hook, context, parameters, gradients);
    }
    return std::make_tuple(reduced, hook->traffic().bytes_sent - sent_before);
  });
  for (const auto& [reduced, bytes_sent] : results) {
    for (const auto& gradient : reduced) {
      CHECK(torch::allclose(gradient, torch::full_like(gradient, 1.5), 1e-5));
    }
    CHECK(reduced[1].is_contiguous(at::MemoryFormat::ChannelsLast));
    CHECK(bytes_sent == 4 * (10 + 20 + 16 + 36 + 4 + 7 + 1));
  }
}

TEST_CASE(
    "PowerSGD's sum of gradients nears the true one's with error feedback",
    "[ddp][hooks][HK-13]") {
  const auto errors_with = [](bool feedback) {
    return errors_of_repeated_mean(
        [&] {
          return power_sgd_hook(PowerSGDOptions()
                                    .start_iteration(2)
                                    .min_compression_rate(1)
                                    .use_error_feedback(feedback));
        },
        /*num_steps=*/50,
        /*seed=*/3);
  };
  for (const double error : errors_with(true)) {
    CHECK(error < 0.1);
  }
  for (const double error : errors_with(false)) {
    CHECK(error > 0.3);
  }
}

TEST_CASE(
    "PowerSGD goes on after a step without gradients",
    "[ddp][hooks][HK-12]") {
  const auto results = run_ranks(2, [&](RankContext& context) {
    const auto hook = power_sgd_hook(PowerSGDOptions()
                                         .matrix_approximation_rank(2)
                                         .start_iteration(2)
                                         .min_compression_rate(1));
    const auto parameters = zeros_as_parameters({{8, 8}});
    hook->attach(context.group(), parameters);
    const auto own = torch::ones({8, 8});
    at::Tensor reduced;
    for (const double scale : {1.0, 1.0, 0.0, 1.0, 0.0, 2.0}) {
      reduced = reduce_with(*hook, context, parameters, {own * scale})[0];
    }
    return reduced;
  });
  for (const auto& reduced : results) {
    CHECK(torch::allclose(reduced, torch::full({8, 8}, 2.0), 1e-5));
  }
}

TEST_CASE(
    "PowerSGD inside the fp16 hook gives the mean with a quarter of the bytes",
    "[ddp][hooks][HK-14]") {
  const auto results = run_ranks(2, [&](RankContext& context) {
    const auto hook = ddp::fp16_compress_hook(
        power_sgd_hook(PowerSGDOptions().start_iteration(2)));
    const auto parameters = zeros_as_parameters({{16, 16}});
    hook->attach(context.group(), parameters);
    at::Tensor reduced;
    for (int64_t step = 0; step < 3; ++step) {
      reduced = reduce_with(
          *hook,
          context,
          parameters,
          {torch::full({16, 16}, 0.25)})[0];
    }
    return std::make_tuple(reduced, hook->traffic().bytes_sent);
  });
  for (const auto& [reduced, bytes_sent] : results) {
    CHECK(reduced.scalar_type() == at::kFloat);
    CHECK(torch::allclose(reduced, torch::full({16, 16}, 0.25), 2e-3));
    CHECK(bytes_sent == 2 * (2 * 256 + 16 + 16));
  }
}

TEST_CASE(
    "PowerSGD that remembers from before the second step is refused",
    "[ddp][hooks][HK-12]") {
  for (const bool feedback : kOffAndOn) {
    const auto text = thrown_text<ConfigError>([&] {
      power_sgd_hook(PowerSGDOptions()
                         .start_iteration(1)
                         .use_error_feedback(feedback)
                         .warm_start(!feedback));
    });
    CHECK(missing_parts(
              text.value_or("nothing was thrown"),
              {"start_iteration", "2", "got 1"})
              .empty());
  }
  CHECK(
      power_sgd_hook(PowerSGDOptions()
                         .start_iteration(0)
                         .use_error_feedback(false)
                         .warm_start(false)) != nullptr);
  CHECK_THROWS_AS(
      power_sgd_hook(PowerSGDOptions().matrix_approximation_rank(0)),
      ConfigError);
  CHECK_THROWS_AS(
      power_sgd_hook(PowerSGDOptions().min_compression_rate(0)),
      ConfigError);
}

} // namespace
} // namespace tandem::test
