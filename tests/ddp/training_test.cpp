#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

constexpr int64_t kSteps = 5;
// Float: sums in another order; the limits that PyTorch's own tests use.
constexpr double kFloatRelative = 1.3e-6;
constexpr double kFloatAbsolute = 5e-5;
// Double: the same, and a wrong divisor or a lost row shows.
constexpr double kDoubleTolerance = 1e-10;

bool is_close(const at::Tensor& left, const at::Tensor& right) {
  return torch::allclose(left, right, kDoubleTolerance, kDoubleTolerance);
}

bool is_close_in_float(const at::Tensor& left, const at::Tensor& right) {
  return torch::allclose(left, right, kFloatRelative, kFloatAbsolute);
}

/// Trains `make()` as every rank and compares with the bare module.
template <typename Make, typename Close>
void check_trains_as_alone(
    int64_t world_size,
    Make make,
    Close close,
    const Options& options,
    at::ScalarType dtype = at::kDouble,
    int64_t steps = kSteps) {
  const auto expected = train_alone(make(), steps, dtype);
  const auto ranks = run_ranks(world_size, [&](RankContext& context) {
    return train_as_rank(make(), context, steps, options, dtype);
  });
  for (const auto& rank : ranks) {
    CHECK(close(rank, expected));
    CHECK(torch::equal(rank, ranks[0]));
  }
}

Options capped(int64_t bytes) {
  return Options().first_bucket_bytes(bytes).bucket_cap_bytes(bytes);
}

TEST_CASE("ranks train like one process on the whole batch", "[ddp][DDP-01]") {
  for (const int64_t world_size : {2, 3}) {
    for (const int64_t cap_bytes : {int64_t(1000), int64_t(25) << 20}) {
      CAPTURE(world_size, cap_bytes);
      check_trains_as_alone(
          world_size,
          [] { return Mlp(); },
          is_close,
          capped(cap_bytes));
      check_trains_as_alone(
          world_size,
          [] { return Mlp(at::kFloat); },
          is_close_in_float,
          capped(cap_bytes),
          at::kFloat);
    }
  }
}

TEST_CASE("gradient is the mean over the ranks", "[ddp][DDP-02][DDP-23]") {
  for (const int64_t world_size : {1, 2, 3, 4}) {
    for (const bool as_view : {true, false}) {
      const auto gradients = run_ranks(world_size, [&](RankContext& context) {
        Scale net;
        DistributedDataParallel model(
            net,
            Options().gradient_as_bucket_view(as_view));
        model(net->input(static_cast<double>(context.rank()))).backward();
        return net->weight.grad().item<float>();
      });
      for (const float gradient : gradients) {
        CHECK(gradient == static_cast<float>(world_size - 1) / 2);
      }
    }
  }
}

struct NoOutputsImpl : torch::nn::Module {
  NoOutputsImpl()
      : used(register_module("used", torch::nn::Linear(2, 4))),
        empty(register_module("empty", torch::nn::Linear(2, 0))) {
    to(at::kDouble);
    fill(*this, 3);
  }
  at::Tensor forward(const at::Tensor& input) {
    return torch::cat({used(input), empty(input)}, 1);
  }
  torch::nn::Linear used;
  torch::nn::Linear empty;
};
TORCH_MODULE(NoOutputs);

TEST_CASE("a parameter without elements trains", "[ddp][DDP-17]") {
  for (const int64_t cap_bytes : {1, 1000}) {
    check_trains_as_alone(
        2,
        [] { return NoOutputs(); },
        is_close,
        capped(cap_bytes));
  }
}

struct OddSizesImpl : torch::nn::Module {
  OddSizesImpl() {
    for (const auto& sizes :
         std::vector<std::vector<int64_t>>{{}, {1}, {7}, {1009}}) {
      parameters_by_size.push_back(register_parameter(
          "p" + std::to_string(parameters_by_size.size()),
          torch::zeros(sizes, at::kDouble)));
    }
    fill(*this, 5);
  }
  at::Tensor forward(const at::Tensor& input) {
    auto factor = torch::zeros({}, at::kDouble);
    for (const auto& parameter : parameters_by_size) {
      factor = factor + parameter.sin().mean();
    }
    return input.sum(1) * factor;
  }
  std::vector<at::Tensor> parameters_by_size;
};
TORCH_MODULE(OddSizes);

TEST_CASE("scalar and prime-sized parameters train", "[ddp][DDP-18]") {
  for (const int64_t world_size : {2, 3}) {
    check_trains_as_alone(
        world_size,
        [] { return OddSizes(); },
        is_close,
        capped(64));
  }
}

struct MixedTypesImpl : torch::nn::Module {
  MixedTypesImpl()
      : first(register_module("first", torch::nn::Linear(2, 6))),
        second(register_module("second", torch::nn::Linear(6, 3))) {
    first->to(at::kDouble);
    fill(*this, 5);
  }
  at::Tensor forward(const at::Tensor& input) {
    return second(first(input.to(at::kDouble)).to(at::kFloat).tanh());
  }
  torch::nn::Linear first;
  torch::nn::Linear second;
};
TORCH_MODULE(MixedTypes);

TEST_CASE("each dtype has buckets of its own", "[ddp][DDP-20]") {
  check_trains_as_alone(
      2,
      [] { return MixedTypes(); },
      is_close_in_float,
      Options(),
      at::kFloat);
  run_ranks(2, [](RankContext&) {
    MixedTypes net;
    DistributedDataParallel model(net);
    TORCH_CHECK(
        contains(model->describe(), "in 2 buckets of 84, 144 bytes"),
        model->describe());
  });
}

struct WideImpl : torch::nn::Module {
  WideImpl()
      : net(register_module(
            "net",
            torch::nn::Sequential(
                torch::nn::Linear(2, 2048),
                torch::nn::Linear(2048, 2048),
                torch::nn::Linear(2048, 1)))) {
    fill(*this, 5);
  }
  // Scaled down, or steps of this size would overshoot.
  at::Tensor forward(const at::Tensor& input) {
    return net->forward(input) * 1e-3;
  }
  torch::nn::Sequential net;
};
TORCH_MODULE(Wide);

TEST_CASE("a parameter larger than the cap trains", "[ddp][DDP-21]") {
  check_trains_as_alone(
      2,
      [] { return Wide(); },
      is_close_in_float,
      capped(int64_t(1) << 20),
      at::kFloat,
      /*steps=*/2);
}

TEST_CASE("a world of one is the bare module, bit for bit", "[ddp][DDP-22]") {
  const auto expected = train_alone(Mlp(), kSteps);
  run_ranks(1, [&](RankContext& context) {
    for (const bool reduce : {false, true}) {
      Mlp net;
      DistributedDataParallel model(net, Options().reduce_at_world_one(reduce));
      const auto trained = train(
          [&](const at::Tensor& input) { return model(input); },
          *net,
          &context,
          kSteps);
      TORCH_CHECK(torch::equal(trained, expected), "reduce ", reduce);
      TORCH_CHECK((model->counters().collectives > 0) == reduce);
      TORCH_CHECK(model->counters().forwards == kSteps);
    }
  });
}

struct NormalizedImpl : torch::nn::Module {
  NormalizedImpl()
      : net(register_module(
            "net",
            torch::nn::Sequential(
                torch::nn::Linear(2, 8),
                torch::nn::BatchNorm1d(8),
                torch::nn::ReLU(),
                torch::nn::Linear(8, 3)))) {
    net->to(at::kDouble);
    fill(*this, 5);
  }
  at::Tensor forward(const at::Tensor& input) {
    return net->forward(input);
  }
  torch::nn::Sequential net;
};
TORCH_MODULE(Normalized);

TEST_CASE("a run repeats itself bit for bit", "[ddp][DDP-94]") {
  for (const int64_t world_size : {2, 3}) {
    const auto run = [&] {
      return run_ranks(world_size, [](RankContext& context) {
        return train_as_rank(Normalized(), context, 20, capped(256));
      });
    };
    const auto first = run();
    for (int repetition = 0; repetition < 2; ++repetition) {
      for (const auto& rank : run()) {
        CHECK(torch::equal(rank, first[0]));
      }
    }
  }
}

TEST_CASE("the bucket cap does not change the result", "[ddp][DDP-95]") {
  for (const int64_t world_size : {2, 3}) {
    const auto trained_with = [&](int64_t cap_bytes) {
      return run_ranks(world_size, [&](RankContext& context) {
        return train_as_rank(Mlp(), context, kSteps, capped(cap_bytes));
      })[0];
    };
    const auto expected = trained_with(int64_t(25) << 20);
    for (const int64_t cap_bytes : {1, 1000, 4096}) {
      const auto trained = trained_with(cap_bytes);
      CHECK(is_close(trained, expected));
      if (world_size == 2) {
        CHECK(torch::equal(trained, expected));
      }
    }
  }
}

} // namespace
} // namespace tandem::test
