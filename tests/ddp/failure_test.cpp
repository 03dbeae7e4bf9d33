#include "support.h"

#include "tandem_catch.h"

namespace tandem::test {
namespace {

at::Tensor rank_input(const RankContext& context) {
  return torch::full({1}, static_cast<double>(context.rank()), at::kDouble);
}

/// Gradients of both towers after a step that uses both; 0.5 each when right.
void expect_usable(
    DistributedDataParallel<TowersImpl>& model,
    const RankContext& context) {
  model->zero_grad();
  auto [left, right] = model(rank_input(context));
  (left + right).backward();
  for (const auto& parameter : model->parameters()) {
    TORCH_CHECK(parameter.grad().template item<double>() == 0.5);
  }
}

TEST_CASE("an unused parameter is named at the next forward", "[ddp][DDP-40]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net, Options().first_bucket_bytes(1));
    model(rank_input(context)).first.backward();
    try {
      model(rank_input(context));
      TORCH_CHECK(false, "the unused parameter was not noticed");
    } catch (const ConfigError& error) {
      const std::string text = error.what_without_backtrace();
      TORCH_CHECK(contains(text, "'right.weight' (1 of 2)"), text);
      TORCH_CHECK(!contains(text, "left"), text);
      TORCH_CHECK(
          contains(text, "rank " + std::to_string(context.rank())),
          text);
    }
    expect_usable(model, context);
  });
}

TEST_CASE("a parameter unused on one rank ends both", "[ddp][DDP-40]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net);
    auto [left, right] = model(rank_input(context));
    (context.rank() == 0 ? left + right : left).backward();
    model(rank_input(context));
  });
  CHECK(is<PeerError>(errors[0]));
  CHECK(contains(text_of(errors[0]), "bucket 1 of 1 ('right.weight'"));
  CHECK(is<ConfigError>(errors[1]));
  CHECK(contains(text_of(errors[1]), "'right.weight'"));
}

TEST_CASE("a second gradient in one step is named", "[ddp][DDP-51]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net);
    auto [left, right] = model(rank_input(context));
    left.backward({}, /*retain_graph=*/true);
    try {
      left.backward();
      TORCH_CHECK(false, "the second gradient was not noticed");
    } catch (const ConfigError& error) {
      TORCH_CHECK(contains(error.what(), "parameter 'left.weight'"));
    }
    expect_usable(model, context);
  });
}

struct Throwing : torch::autograd::Function<Throwing> {
  static at::Tensor forward(
      torch::autograd::AutogradContext*,
      const at::Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*,
      const torch::autograd::variable_list&) {
    throw std::out_of_range("wonderful");
  }
};

/// Its backward reaches the right tower, and then throws if told so.
struct TrippingImpl : torch::nn::Module {
  TrippingImpl() : towers(register_module("towers", Towers())) {}
  at::Tensor forward(const at::Tensor& input, bool trips) {
    auto left = towers->left(input);
    left = trips ? Throwing::apply(left) : left;
    return left + towers->right(input);
  }
  Towers towers;
};
TORCH_MODULE(Tripping);

TEST_CASE("a backward that throws leaves the wrapper usable", "[ddp][FT-13]") {
  for (const bool as_view : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      Tripping net;
      DistributedDataParallel model(
          net,
          Options().first_bucket_bytes(1).gradient_as_bucket_view(as_view));
      const auto before = model->counters().collectives;
      try {
        model(rank_input(context), true).backward();
        TORCH_CHECK(false, "nothing was thrown");
      } catch (const std::out_of_range& error) {
        TORCH_CHECK(contains(error.what(), "wonderful"));
      }
      TORCH_CHECK(
          model->counters().collectives == before + 1,
          "one bucket was to be under way");
      model->zero_grad();
      model(rank_input(context), false).backward();
      for (const auto& parameter : model->parameters()) {
        TORCH_CHECK(parameter.grad().item<double>() == 0.5);
      }
    });
  }
}

/// Looks rows up without a layer that says so.
struct LookupImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& rows) {
    return torch::embedding(weight, rows, -1, false, /*sparse=*/true);
  }
  at::Tensor weight = register_parameter("weight", torch::ones({4, 2}));
};
TORCH_MODULE(Lookup);

TEST_CASE("an unforeseen sparse gradient is refused by name", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Lookup net;
    DistributedDataParallel model(net);
    model(torch::tensor({1, 2})).sum().backward();
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'weight'"));
  }
}

TEST_CASE("a wrapper may go before its backward", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    at::Tensor output;
    {
      DistributedDataParallel model(net);
      output = model(rank_input(context)).first;
    }
    output.backward();
    TORCH_CHECK(
        net->left->weight.grad().item<double>() ==
        static_cast<double>(context.rank()));
    DistributedDataParallel again(net);
    expect_usable(again, context);
  });
}

TEST_CASE("a peer that leaves is an error of backward", "[ddp][FT-01]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net);
    auto [left, right] = model(rank_input(context));
    if (context.rank() == 1) {
      throw std::runtime_error("left early");
    }
    (left + right).backward();
  });
  CHECK(is<PeerError>(errors[0]));
  CHECK(contains(text_of(errors[0]), "gradient bucket 1 of 1"));
  CHECK(contains(text_of(errors[0]), "rank 1"));
}

TEST_CASE("a failed reduction is not taken up again", "[ddp][FT-01]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net);
    const auto both = [&] {
      auto [left, right] = model(rank_input(context));
      return left + right;
    };
    both().backward();
    if (context.rank() == 1) {
      throw std::runtime_error("left early");
    }
    try {
      both().backward();
    } catch (const PeerError&) {
      both().backward();
    }
  });
  CHECK(is<PeerError>(errors[0]));
  CHECK(contains(text_of(errors[0]), "has failed"));
}

TEST_CASE("errors may be checked a step later", "[ddp]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(
        net,
        Options().error_check(ErrorCheck::kNextStep));
    for (int step = 0; step < 3; ++step) {
      expect_usable(model, context);
    }
  });
}

} // namespace
} // namespace tandem::test
