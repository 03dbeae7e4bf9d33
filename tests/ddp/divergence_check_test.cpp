#include "ddp/src/divergence_check.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <tandem/core/named_tensors.h>
#include <tandem/ddp/comm_hooks.h>
#include <tandem/testing/error_text.h>

#include "ddp/src/bit_checksums.h"
#include "support.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

using detail::bit_checksums;
using detail::DivergenceCheck;
using testing::missing_parts;

constexpr int64_t kEvery = 4;

/// Moves one weight to the next representable number.
void nudge(const at::Tensor& parameter) {
  const torch::NoGradGuard no_grad;
  auto first = parameter.view({-1})[0];
  first.copy_(torch::nextafter(first, torch::full_like(first, 100)));
}

/// Trains, with a check after each step; rank 1 nudges after step `when`.
/// Returns the step whose check threw.
int64_t train_until_alarm(const RankContext& context, int64_t when) {
  Mlp net(at::kFloat);
  DistributedDataParallel model(net);
  torch::optim::SGD optimizer(model->parameters(), 0.01);
  DivergenceCheck check(context.group(), unique_parameters(*net), kEvery);
  for (int64_t step = 1; step <= 3 * kEvery; ++step) {
    const auto batch =
        normal({kRows, 2}, static_cast<uint64_t>(step), at::kFloat);
    optimizer.zero_grad();
    model(share(batch, context)).square().mean().backward();
    optimizer.step();
    if (step == when && context.rank() == 1) {
      nudge(net->parameters().at(1));
    }
    try {
      check.step();
    } catch (const PeerError& error) {
      const std::string text = error.what_without_backtrace();
      const auto name = unique_parameters(*net).at(1).name;
      TORCH_CHECK(
          missing_parts(
              text,
              {"parameter '" + name + "'",
               "got others on rank 1.",
               "after step " + std::to_string(step)})
              .empty(),
          text);
      return step;
    }
  }
  return 0;
}

TEST_CASE("a weight off by one bit is named in time", "[ddp][TR-10]") {
  const auto steps = run_ranks(3, [](RankContext& context) {
    return train_until_alarm(context, kEvery + 1);
  });
  CHECK(steps == std::vector<int64_t>(3, 2 * kEvery));
}

TEST_CASE("ranks that hold the same raise no alarm", "[ddp][TR-10]") {
  const auto steps = run_ranks(2, [](RankContext& context) {
    return train_until_alarm(context, 0);
  });
  CHECK(steps == std::vector<int64_t>(2, 0));
}

/// Forwards of a wrapper until one throws, from a weight that rank 1 has moved
/// on; `num_forwards` if none does.
int64_t forwards_until_alarm(
    const RankContext& context,
    const Options& options,
    bool has_hook,
    int64_t num_forwards) {
  Scale net;
  DistributedDataParallel model(net, options);
  if (has_hook) {
    model->register_comm_hook(ddp::noop_hook());
  }
  if (context.rank() == 1) {
    nudge(net->weight);
  }
  for (int64_t forward = 0; forward < num_forwards; ++forward) {
    try {
      model(net->input(1)).sum().backward();
    } catch (const PeerError& error) {
      TORCH_CHECK(contains(error.what(), "parameter 'weight'"));
      return forward;
    }
  }
  return num_forwards;
}

TEST_CASE("a wrapper finds ranks that differ", "[ddp][TR-10]") {
  constexpr int64_t many = 12;
  const auto check = [](int64_t every, bool has_hook) {
    const auto counts = run_ranks(2, [&](RankContext& context) {
      return forwards_until_alarm(
          context,
          Options().divergence_check_every(every),
          has_hook,
          many);
    });
    CHECK(counts[0] == counts[1]);
    return counts[0];
  };
  CHECK(check(kEvery, false) == kEvery - 1);
  CHECK(check(0, false) == many);
  // Under this hook ranks are meant to differ.
  CHECK(check(kEvery, true) == many);
}

TEST_CASE("collectives that differ are told without the detail", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    DivergenceCheck check(context.group(), {}, 1);
    check.step();
    auto tensor = context.rank() == 0 ? torch::ones({4}) : torch::ones({2, 2});
    context.group()->all_reduce(tensor);
    try {
      check.step();
      TORCH_CHECK(false, "the difference was not found");
    } catch (const PeerError& error) {
      const std::string text = error.what_without_backtrace();
      TORCH_CHECK(
          missing_parts(text, {"collectives", "up to step 2", "rank 1"})
              .empty(),
          text);
    }
  });
}

TEST_CASE("a check costs one small collective at its steps", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    const std::vector<NamedTensor> parameters{{"weight", torch::ones({9})}};
    DivergenceCheck check(context.group(), parameters, 3);
    DivergenceCheck none(context.group(), parameters, 0);
    for (int step = 0; step < 7; ++step) {
      check.step();
      none.step();
    }
    TORCH_CHECK(check.counters().collectives == 2);
    TORCH_CHECK(check.counters().bytes_moved == 64);
    TORCH_CHECK(none.counters().collectives == 0);
  });
}

int64_t checksum_of(const at::Tensor& tensor) {
  return bit_checksums({{"it", tensor}}).item<int64_t>();
}

TEST_CASE("a checksum changes with every bit", "[ddp]") {
  for (const auto dtype :
       {at::kFloat,
        at::kDouble,
        at::kHalf,
        at::kBFloat16,
        at::kLong,
        at::kByte,
        at::kComplexFloat}) {
    CAPTURE(dtype);
    for (const int64_t size : {1, 7, 33}) {
      const auto tensor = torch::arange(size).to(dtype);
      const auto before = checksum_of(tensor);
      CHECK(checksum_of(tensor.clone()) == before);
      auto bytes = torch::from_blob(
          tensor.data_ptr(),
          {static_cast<int64_t>(tensor.nbytes())},
          at::kByte);
      for (int64_t i = 0; i < bytes.numel(); ++i) {
        bytes[i].bitwise_xor_(1 << (i % 8));
        CHECK(checksum_of(tensor) != before);
        bytes[i].bitwise_xor_(1 << (i % 8));
      }
    }
  }
}

TEST_CASE("a checksum goes by the indices, not the memory", "[ddp]") {
  const auto tensor = torch::arange(24.0).view({2, 3, 2, 2});
  const auto strided = tensor.contiguous(at::MemoryFormat::ChannelsLast);
  CHECK(checksum_of(strided) == checksum_of(tensor));
  CHECK(checksum_of(tensor.flip(0)) != checksum_of(tensor));
  CHECK(bit_checksums({}).numel() == 0);
  CHECK(checksum_of(torch::empty({0})) == checksum_of(torch::empty({0, 3})));
}

// Shows what a check pays: run it by its tag.
TEST_CASE("a checksum reads memory fast", "[.measure]") {
  const auto tensor = torch::ones({25'000'000});
  const auto begin = std::chrono::steady_clock::now();
  checksum_of(tensor);
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  const auto gb_per_s =
      static_cast<double>(tensor.nbytes()) / taken.count() / 1e9;
  WARN(
      "checksum of 100 MB: " << taken.count() << " s, " << gb_per_s << " GB/s");
  CHECK(gb_per_s > 0.5);
}

} // namespace
} // namespace tandem::test
