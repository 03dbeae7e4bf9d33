#include <tandem/wrap.h>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

using tandem::ConfigError;
using tandem::DataParallelOptions;
using tandem::Strategy;
using tandem::WrapOptions;

TEST_CASE("wrap gives the wrapper that was asked for", "[tandem]") {
  torch::nn::Linear net(3, 2);
  const auto input = torch::randn({4, 3});
  const auto single = tandem::wrap(net);
  CHECK(single->strategy() == "single");
  CHECK(single->forward(input).equal(net(input)));
  const auto dp = tandem::wrap(
      net,
      WrapOptions(Strategy::kDP)
          .dp(DataParallelOptions().devices({at::kCPU, at::kCPU})));
  CHECK(dp->strategy() == "dp");
  CHECK(dp->num_replicas() == 2);
  CHECK(dp->module() == net.ptr());
  tandem::testing::run_ranks(2, [&](auto&) {
    torch::nn::Linear own(3, 2);
    const auto ddp = tandem::wrap(own, Strategy::kDDP);
    TORCH_CHECK(ddp->strategy() == "ddp" && ddp->world_size() == 2);
  });
}

TEST_CASE("strategies have the names that wrappers say", "[tandem]") {
  for (const auto strategy :
       {Strategy::kSingle, Strategy::kDP, Strategy::kDDP}) {
    CHECK(
        tandem::strategy_from_name(tandem::strategy_name(strategy)) ==
        strategy);
  }
  const auto error = tandem::testing::thrown_text<ConfigError>(
      [] { tandem::strategy_from_name("fsdp"); });
  CHECK(
      error.value_or("") == "strategy: expected single, dp or ddp, got 'fsdp'");
}
