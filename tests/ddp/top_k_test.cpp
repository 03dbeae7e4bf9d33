#include <cstdint>
#include <tuple>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/ddp/comm_hooks.h>
#include <tandem/testing/rank_threads.h>

#include "hook_steps.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using ddp::top_k_hook;
using ddp::TopKOptions;
using testing::RankContext;
using testing::run_ranks;

TEST_CASE(
    "top-k hook averages each rank's largest elements and counts their bytes",
    "[ddp][hooks]") {
  for (const auto dtype : {at::kHalf, at::kFloat, at::kDouble}) {
    const auto results = run_ranks(3, [&](RankContext& context) {
      const auto hook = top_k_hook(TopKOptions().ratio(0.25));
      const auto parameters = zeros_as_parameters({{2, 2}, {4}}, dtype);
      hook->attach(context.group(), parameters);
      // Rank r's largest of 8: places r and r + 1.
      auto own = torch::full({8}, 0.5, dtype);
      own[context.rank()] = -12;
      own[context.rank() + 1] = 6;
      const auto reduced = reduce_with(
          *hook,
          context,
          parameters,
          {own.narrow(0, 0, 4).view({2, 2}), own.narrow(0, 4, 4)});
      return std::make_tuple(
          torch::cat({reduced[0].flatten(), reduced[1]}),
          hook->traffic().bytes_sent);
    });
    const auto expected =
        torch::tensor({-4.0, -2.0, -2.0, 2.0, 0.0, 0.0, 0.0, 0.0}, dtype);
    for (const auto& [mean, bytes_sent] : results) {
      CHECK(mean.equal(expected));
      // Of 3 ranks, 2 places and 2 values.
      CHECK(
          bytes_sent ==
          3 * 2 * (4 + static_cast<int64_t>(c10::elementSize(dtype))));
    }
  }
}

TEST_CASE(
    "top-k hook sends with error feedback what it left out before",
    "[ddp][hooks][HK-13]") {
  const auto errors_with = [](bool feedback) {
    return errors_of_repeated_mean(
        [&] {
          return top_k_hook(
              TopKOptions().ratio(0.25).use_error_feedback(feedback));
        },
        /*num_steps=*/40,
        /*seed=*/7);
  };
  for (const double error : errors_with(true)) {
    CHECK(error < 0.05);
  }
  for (const double error : errors_with(false)) {
    CHECK(error > 0.2);
  }
}

TEST_CASE("top-k ratio outside of its range is refused", "[ddp][hooks]") {
  CHECK_THROWS_AS(top_k_hook(TopKOptions().ratio(0)), ConfigError);
  CHECK_THROWS_AS(top_k_hook(TopKOptions().ratio(1.5)), ConfigError);
}

} // namespace
} // namespace tandem::test
