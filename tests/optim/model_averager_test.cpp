#include <tandem/optim/model_averager.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <tandem/comm/backend.h>
#include <tandem/core/errors.h>
#include <tandem/optim/hierarchical_model_averager.h>
#include <tandem/optim/periodic_model_averager.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"
#include "text.h"

namespace tandem::test {
namespace {

using testing::RankContext;
using testing::run_ranks;

using Group = std::shared_ptr<comm::ProcessGroup>;

/// This rank's group of the pairs 0, 1 and 2, 3.
Group pair_of(const RankContext& context) {
  const auto& world = *context.group();
  return comm::connect_group(
      {.store = c10::make_intrusive<c10d::PrefixStore>(
           "pair" + std::to_string(world.rank() / 2),
           world.store()),
       .rank = world.rank() % 2,
       .size = 2});
}

/// Averages a value that begins at this rank's number and grows by it in each
/// step. Returns it after each step.
std::vector<double> values_after_steps(
    ModelAverager& averager,
    int64_t rank,
    int64_t num_steps) {
  auto value = torch::zeros({1}, at::kDouble);
  std::vector<double> after;
  for (int64_t step = 0; step < num_steps; ++step) {
    value += static_cast<double>(rank);
    averager.average_parameters({value});
    after.push_back(value.item<double>());
  }
  return after;
}

TEST_CASE("averaging gives every rank the mean of each parameter", "[optim]") {
  for (const int64_t world_size : {1, 2, 3, 4}) {
    run_ranks(world_size, [&](RankContext& context) {
      const double rank = static_cast<double>(context.rank());
      const double mean = static_cast<double>(world_size - 1) / 2;
      const auto wide = torch::full({2, 3}, rank).t();
      const auto narrow = torch::full({4}, rank, at::kDouble);
      const auto empty = torch::zeros({0});
      average_over(*context.group(), {wide, narrow, empty});
      TORCH_CHECK(wide.allclose(torch::full({3, 2}, mean)));
      TORCH_CHECK(narrow.allclose(torch::full({4}, mean, at::kDouble)));
    });
  }
}

TEST_CASE("graph from before averaging does not fit any more", "[optim]") {
  run_ranks(2, [](RankContext& context) {
    const auto parameter = torch::ones({2}).requires_grad_();
    const auto loss = parameter.square().sum();
    average_over(*context.group(), {parameter});
    TORCH_CHECK(contains(
        message_thrown_by([&] { loss.backward(); }),
        "modified by an inplace operation"));
  });
}

TEST_CASE("periodic averager averages when it is time to", "[optim][LS-01]") {
  const auto results = run_ranks(3, [](RankContext& context) {
    PeriodicModelAverager averager(/*period=*/4, /*warmup_steps=*/2);
    auto after = values_after_steps(averager, context.rank(), 8);
    TORCH_CHECK(averager.step() == 8);
    return after;
  });
  // Together after steps 2 and 6, and on from there.
  CHECK(results[0] == std::vector<double>{0, 0, 3, 3, 3, 3, 7, 7});
  CHECK(results[1] == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(results[2] == std::vector<double>{2, 4, 3, 5, 7, 9, 7, 9});
}

TEST_CASE("averager goes on from a step that was set", "[optim][LS-01]") {
  run_ranks(2, [](RankContext& context) {
    PeriodicModelAverager averager(/*period=*/4);
    averager.set_step(3);
    const auto after = values_after_steps(averager, context.rank(), 2);
    TORCH_CHECK(after[0] == static_cast<double>(context.rank()));
    TORCH_CHECK(after[1] == 1);
    TORCH_CHECK(contains(
        message_thrown_by([&] { averager.set_step(-1); }),
        "expected at least 0, got -1"));
  });
}

TEST_CASE("hierarchical averager takes the widest ranks due", "[optim]") {
  const auto results = run_ranks(4, [](RankContext& context) {
    HierarchicalModelAverager averager(
        {{.period = 2, .group = pair_of(context)},
         {.period = 4, .group = context.group()}},
        /*warmup_steps=*/1);
    return values_after_steps(averager, context.rank(), 6);
  });
  // Pairs after step 2, all after step 4.
  CHECK(results[0] == std::vector<double>{0, 0, 1.5, 1.5, 7.5, 7.5});
  CHECK(results[1] == std::vector<double>{1, 2, 1.5, 2.5, 7.5, 8.5});
  CHECK(results[2] == std::vector<double>{2, 4, 7.5, 9.5, 7.5, 9.5});
  CHECK(results[3] == std::vector<double>{3, 6, 7.5, 10.5, 7.5, 10.5});
}

TEST_CASE("averagers refuse what makes no sense", "[optim]") {
  run_ranks(4, [](RankContext& context) {
    const auto world = context.group();
    const auto pair = pair_of(context);
    const auto expect = [](const std::string& words, const auto& call) {
      const auto message = message_thrown_by(call);
      TORCH_CHECK(contains(message, words), message);
    };
    expect("at least 1, got 0", [] { PeriodicModelAverager{0}; });
    expect("at least 0, got -1", [] { PeriodicModelAverager(1, -1); });
    using Averager = HierarchicalModelAverager;
    using Levels = std::vector<AveragingLevel>;
    expect("at least one, got none", [] { Averager{Levels()}; });
    expect("expected a process group", [] { Averager(Levels{{2, nullptr}}); });
    expect("period above 0", [&] { Averager(Levels{{0, world}}); });
    expect("period above 2, got 2", [&] {
      Averager(Levels{{2, pair}, {2, world}});
    });
    expect("at least 4 ranks", [&] {
      Averager(Levels{{2, world}, {4, pair}});
    });
    expect("got -1", [&] { Averager(Levels{{2, world}}, -1); });
  });
}

} // namespace
} // namespace tandem::test
