#include <tandem/ddp/comm_hooks.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/process_group.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/errors.h>
#include <tandem/core/named_tensors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "hook_steps.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using testing::missing_parts;
using testing::RankContext;
using testing::run_ranks;
using testing::thrown_text;

constexpr int64_t kHookWorlds[] = {1, 2, 3};

/// Rank r's gradients: (r + 1) * [0, 1, ... 19] / 8, exact in half precision.
std::vector<at::Tensor> ramps(int64_t rank) {
  const auto ramp = torch::arange(20.0) / 8 * (rank + 1);
  return {ramp.narrow(0, 0, 12).view({3, 4}), ramp.narrow(0, 12, 8)};
}

std::vector<NamedTensor> ramp_parameters() {
  return zeros_as_parameters({{3, 4}, {8}});
}

at::Tensor mean_of_ramps(int64_t world_size) {
  return torch::arange(20.0) / 8 * (static_cast<double>(world_size + 1) / 2);
}

struct Reduced {
  at::Tensor flat;
  comm::HookTraffic traffic;
  std::string description;
};

/// Each rank's gradients after one reduction.
template <typename MakeHook>
std::vector<Reduced> reduce_ramps(int64_t world_size, MakeHook make_hook) {
  return run_ranks(world_size, [&](RankContext& context) {
    const auto hook = make_hook();
    const auto parameters = ramp_parameters();
    hook->attach(context.group(), parameters);
    const auto reduced =
        reduce_with(*hook, context, parameters, ramps(context.rank()));
    return Reduced{
        torch::cat({reduced[0].flatten(), reduced[1]}),
        hook->traffic(),
        hook->describe()};
  });
}

TEST_CASE(
    "all-reduce hook gives the mean over the ranks, uncompressed",
    "[ddp][hooks]") {
  for (const int64_t world_size : kHookWorlds) {
    for (const auto& reduced : reduce_ramps(world_size, ddp::all_reduce_hook)) {
      CHECK(torch::allclose(reduced.flat, mean_of_ramps(world_size), 1e-6));
      CHECK(reduced.traffic.bytes_uncompressed == 80);
      CHECK(reduced.traffic.bytes_sent == 80);
      CHECK(reduced.traffic.num_buckets == 1);
    }
  }
}

TEST_CASE(
    "fp16 hook gives the mean in float and sends half of the bytes",
    "[ddp][hooks][HK-02]") {
  for (const int64_t world_size : kHookWorlds) {
    for (const auto& reduced :
         reduce_ramps(world_size, [] { return ddp::fp16_compress_hook(); })) {
      CHECK(reduced.flat.scalar_type() == at::kFloat);
      // Thirds are not exact in half precision: 11 bits.
      CHECK(
          torch::allclose(reduced.flat, mean_of_ramps(world_size), 1e-3, 1e-4));
      CHECK(reduced.traffic.bytes_uncompressed == 80);
      CHECK(reduced.traffic.bytes_sent == 40);
      CHECK(
          reduced.description ==
          "fp16_compress: sent 40 bytes for 80 bytes of gradients in 1 "
          "buckets");
    }
  }
}

TEST_CASE(
    "fp16 hook's sum of large gradients does not overflow",
    "[ddp][hooks][HK-02]") {
  const auto results = run_ranks(3, [](RankContext& context) {
    const auto hook = ddp::fp16_compress_hook();
    const auto parameters = zeros_as_parameters({{4}});
    hook->attach(context.group(), parameters);
    return reduce_with(
        *hook,
        context,
        parameters,
        {torch::full({4}, 60000.0)})[0];
  });
  for (const auto& result : results) {
    CHECK(torch::allclose(result, torch::full({4}, 60000.0), 1e-3));
  }
}

TEST_CASE("bf16 hook gives the mean over Gloo", "[ddp][hooks][HK-03]") {
  for (const int64_t world_size : kHookWorlds) {
    for (const auto& reduced :
         reduce_ramps(world_size, [] { return ddp::bf16_compress_hook(); })) {
      CHECK(reduced.flat.scalar_type() == at::kFloat);
      // 8 bits, rounded at the cast, the division and the sums.
      CHECK(
          torch::allclose(reduced.flat, mean_of_ramps(world_size), 2e-2, 1e-4));
      CHECK(reduced.traffic.bytes_sent == 40);
    }
  }
}

TEST_CASE(
    "half gradients stay as they are under the fp16 hook",
    "[ddp][hooks][HK-02]") {
  const auto results = run_ranks(2, [](RankContext& context) {
    const auto hook = ddp::fp16_compress_hook();
    const auto parameters = zeros_as_parameters({{4}}, at::kHalf);
    hook->attach(context.group(), parameters);
    const auto own = torch::full({4}, context.rank() + 1.0, at::kHalf);
    const auto mean = reduce_with(*hook, context, parameters, {own})[0];
    return std::make_tuple(mean, hook->traffic().bytes_sent);
  });
  for (const auto& [mean, bytes_sent] : results) {
    CHECK(mean.equal(torch::full({4}, 1.5, at::kHalf)));
    CHECK(bytes_sent == 8);
  }
}

TEST_CASE(
    "function that returns ones, with one added, makes every gradient two",
    "[ddp][hooks][HK-04]") {
  for (const auto& reduced : reduce_ramps(2, [] {
         return std::make_shared<comm::FunctionHook>(
             [](comm::GradBucket& bucket) {
               return comm::then(
                   comm::ready_future(torch::ones_like(bucket.buffer())),
                   [](const auto& ones) { return ones + 1; });
             });
       })) {
    CHECK(reduced.flat.equal(torch::full({20}, 2.0)));
  }
}

TEST_CASE(
    "function that chains onto a mean gives what the chain makes of it",
    "[ddp][hooks][HK-05]") {
  // Gradients of 0.25: times 10, divided by 2.
  const auto results = run_ranks(2, [](RankContext& context) {
    comm::FunctionHook hook([group = context.group()](auto& bucket) {
      const auto mean = comm::all_reduce_future(*group, bucket.buffer());
      const auto tenfold =
          comm::then(mean, [](const auto& tensor) { return tensor * 10; });
      return comm::then(tenfold, [](const auto& tensor) { return tensor / 2; });
    });
    const auto parameters = zeros_as_parameters({{2, 2}});
    hook.attach(context.group(), parameters);
    return reduce_with(
        hook,
        context,
        parameters,
        {torch::full({2, 2}, 0.25)})[0];
  });
  for (const auto& result : results) {
    CHECK(result.equal(torch::full({2, 2}, 1.25)));
  }
}

TEST_CASE(
    "no-op hook leaves gradients for a mean by hand and sends nothing",
    "[ddp][hooks][HK-07]") {
  const auto results = run_ranks(3, [](RankContext& context) {
    const auto hook = ddp::noop_hook();
    const auto parameters = ramp_parameters();
    hook->attach(context.group(), parameters);
    auto reduced =
        reduce_with(*hook, context, parameters, ramps(context.rank()));
    const bool untouched = reduced[0].equal(ramps(context.rank())[0]);
    context.group()->all_reduce(reduced[1], comm::ReduceOp::kMean);
    return std::make_tuple(untouched, reduced[1], hook->traffic().bytes_sent);
  });
  for (const auto& [untouched, mean, bytes_sent] : results) {
    CHECK(untouched);
    CHECK(torch::allclose(mean, mean_of_ramps(3).narrow(0, 12, 8), 1e-5));
    CHECK(bytes_sent == 0);
  }
}

TEST_CASE(
    "fp16 hook around another hands it half the bytes and counts its traffic",
    "[ddp][hooks][HK-14]") {
  for (const auto& reduced : reduce_ramps(2, [] {
         return ddp::fp16_compress_hook(
             ddp::bf16_compress_hook(ddp::all_reduce_hook()));
       })) {
    CHECK(torch::allclose(reduced.flat, mean_of_ramps(2), 1e-3, 1e-4));
    CHECK(reduced.traffic.bytes_sent == 40);
    CHECK(missing_parts(
              reduced.description,
              {"fp16_compress(bf16_compress(allreduce))"})
              .empty());
  }
}

TEST_CASE(
    "hook that wraps one in use is refused by the name of that one",
    "[ddp][hooks][HK-09]") {
  const auto texts = run_ranks(2, [](RankContext& context) {
    const auto inner = ddp::all_reduce_hook();
    inner->attach(context.group(), ramp_parameters());
    const auto outer = ddp::fp16_compress_hook(inner);
    return thrown_text<ConfigError>(
               [&] { outer->attach(context.group(), ramp_parameters()); })
        .value_or("nothing was thrown");
  });
  for (const auto& text : texts) {
    CHECK(missing_parts(text, {"'allreduce'", "in use"}).empty());
  }
}

} // namespace
} // namespace tandem::test
