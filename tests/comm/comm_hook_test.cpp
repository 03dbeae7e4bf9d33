#include <tandem/comm/comm_hook.h>

#include <chrono>
#include <exception>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace tandem::comm {
namespace {

using testing::missing_parts;
using testing::RankContext;
using testing::run_ranks;
using testing::thrown_text;
using testing::try_ranks;

constexpr int64_t kWorlds[] = {1, 2, 3};

std::vector<NamedTensor> two_parameters() {
  return {
      {"weight", torch::zeros({1, 2, 2, 2}).to(at::MemoryFormat::ChannelsLast)},
      {"bias", torch::zeros({3})}};
}

/// Rank r holds (r + 1) * [0, 1, ... 10].
GradBucket make_bucket(int64_t rank) {
  return {2, true, torch::arange(11.0) * (rank + 1), two_parameters()};
}

FunctionHook mean_hook(const RankContext& context) {
  return FunctionHook([group = context.group()](GradBucket& bucket) {
    return all_reduce_future(*group, bucket.buffer());
  });
}

TEST_CASE(
    "bucket's gradients are views into its buffer, strided as the parameters",
    "[comm][hooks]") {
  auto bucket = make_bucket(0);
  const auto gradients = bucket.gradients();
  REQUIRE(gradients.size() == 2);
  CHECK(gradients[0].strides() == bucket.parameters()[0].tensor.strides());
  CHECK(gradients[1].equal(torch::tensor({8.0F, 9.0F, 10.0F})));
  gradients[1].zero_();
  CHECK(bucket.buffer()[9].item<float>() == 0);

  bucket.set_buffer(torch::ones({11}, at::kHalf));
  CHECK(bucket.gradients()[0].scalar_type() == at::kHalf);
  CHECK(bucket.dtype() == at::kFloat);
  CHECK_THROWS_AS(bucket.set_buffer(torch::ones({10})), ShapeError);
}

TEST_CASE("hook's result is the mean that its future gives", "[comm][hooks]") {
  for (const int64_t world_size : kWorlds) {
    const auto results = run_ranks(world_size, [](RankContext& context) {
      auto hook = mean_hook(context);
      hook.attach(context.group(), two_parameters());
      auto bucket = make_bucket(context.rank());
      const auto future = hook.run(bucket);
      context.group()->wait(
          work_of(future, context.group()->timeout()),
          "test");
      return hook.collect(bucket, future);
    });
    const auto expected =
        torch::arange(11.0) * (static_cast<double>(world_size + 1) / 2);
    for (const auto& result : results) {
      CHECK(torch::allclose(result, expected, 1e-6));
    }
  }
}

TEST_CASE(
    "future that is chained gives what the chain makes of it",
    "[comm][hooks]") {
  const auto doubled = then(
      ready_future(torch::ones({2})),
      [](const auto& one) { return one * 2; });
  CHECK(tensor_of(doubled).equal(torch::full({2}, 2.0)));
  const auto failed = then(doubled, [](const auto&) -> at::Tensor {
    throw ConfigError("no luck");
  });
  const auto text = thrown_text<Error>([&] {
    tensor_of(then(failed, [](const auto& tensor) { return tensor; }));
  });
  CHECK(text.value_or("") == "no luck");
}

TEST_CASE("empty function is no hook", "[comm][hooks][HK-09]") {
  CHECK_THROWS_AS(FunctionHook(nullptr), ConfigError);
}

TEST_CASE(
    "hook's result of another size or dtype is an error that names both",
    "[comm][hooks][HK-09]") {
  const auto text_for = [](const at::Tensor& result) {
    return run_ranks(
               1,
               [&](RankContext& context) {
                 FunctionHook hook(
                     [&](GradBucket&) { return ready_future(result); },
                     "odd");
                 hook.attach(context.group(), two_parameters());
                 auto bucket = make_bucket(0);
                 return thrown_text<ShapeError>(
                            [&] { hook.collect(bucket, hook.run(bucket)); })
                     .value_or("nothing was thrown");
               })
        .front();
  };
  CHECK(missing_parts(
            text_for(torch::ones({10})),
            {"'odd'", "bucket 2", "[11]", "[10]"})
            .empty());
  CHECK(missing_parts(text_for(torch::ones({11}, at::kHalf)), {"Float", "Half"})
            .empty());
}

TEST_CASE(
    "hook serves one wrapper, and the same one on all ranks",
    "[comm][hooks][HK-09]") {
  const auto twice = try_ranks(2, [](RankContext& context) {
    auto hook = mean_hook(context);
    hook.attach(context.group(), two_parameters());
    hook.attach(context.group(), two_parameters());
  });
  const auto different = try_ranks(2, [](RankContext& context) {
    FunctionHook hook(
        [](GradBucket& bucket) { return ready_future(bucket.buffer()); },
        context.rank() == 0 ? "left" : "right");
    hook.attach(context.group(), two_parameters());
  });
  for (const auto& error : twice) {
    CHECK(missing_parts(message_of(error), {"'function'", "in use"}).empty());
  }
  for (const auto& error : different) {
    CHECK(missing_parts(
              message_of(error),
              {"communication hook", "left", "right"})
              .empty());
  }
}

TEST_CASE(
    "future that never comes ends at the group's limit",
    "[comm][hooks]") {
  const auto errors = try_ranks(
      1,
      [](RankContext& context) {
        const auto never =
            c10::make_intrusive<c10::ivalue::Future>(c10::TensorType::get());
        context.group()->wait(
            work_of(never, context.group()->timeout()),
            "bucket 1");
      },
      testing::RunRanksOptions().timeout(std::chrono::milliseconds(200)));
  CHECK_THROWS_AS(std::rethrow_exception(errors.front()), TimeoutError);
  CHECK(missing_parts(message_of(errors.front()), {"bucket 1"}).empty());
}

} // namespace
} // namespace tandem::comm
