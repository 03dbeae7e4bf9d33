#include "support.h"

#include "tandem_catch.h"
#include "warnings.h"

namespace tandem::test {
namespace {

/// One rank with the one weight wrapped: inputs are the rank plus a number, so
/// that the two ranks' mean is that number plus 0.5.
struct ScaleRank {
  explicit ScaleRank(const RankContext& context, const Options& options)
      : rank(static_cast<double>(context.rank())), model(net, options) {}

  at::Tensor forward(double plus) {
    return model(net->input(rank + plus));
  }
  void step(double plus) {
    forward(plus).backward();
  }
  void expect(double local_or_mean) const {
    TORCH_CHECK(
        net->weight.grad().item<double>() == local_or_mean,
        "expected ",
        local_or_mean,
        ", got ",
        net->weight.grad().item<double>());
  }

  Scale net;
  double rank;
  DistributedDataParallel<ScaleImpl> model;
};

/// Runs `body` as two ranks, with gradients as views and as copies.
template <typename Body>
void run_two(Body body) {
  for (const bool as_view : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      ScaleRank self(context, Options().gradient_as_bucket_view(as_view));
      body(self);
    });
  }
}

TEST_CASE("no_sync keeps gradients until a synced step", "[ddp][DDP-30]") {
  run_two([](ScaleRank& self) {
    {
      const auto guard = self.model->no_sync();
      self.step(0);
    }
    self.expect(self.rank);
    self.step(10);
    self.expect(11);
  });
}

TEST_CASE("the forward decides whether a backward is synced", "[ddp][DDP-30]") {
  run_two([](ScaleRank& self) {
    at::Tensor output;
    {
      const auto guard = self.model->no_sync();
      output = self.forward(0);
    }
    output.backward();
    self.expect(self.rank);
    output = self.forward(10);
    const auto guard = self.model->no_sync();
    output.backward();
    self.expect(11);
  });
}

TEST_CASE("synced steps add up without zeroing", "[ddp][DDP-32]") {
  run_two([](ScaleRank& self) {
    self.step(0);
    self.expect(0.5);
    self.step(10);
    self.expect(11);
  });
}

TEST_CASE("a no-grad forward in no_sync leaves no gradient", "[ddp][DDP-33]") {
  run_two([](ScaleRank& self) {
    const auto collectives = self.model->counters().collectives;
    const auto guard = self.model->no_sync();
    const torch::NoGradGuard no_grad;
    self.forward(0);
    TORCH_CHECK(!self.net->weight.grad().defined());
    TORCH_CHECK(self.model->counters().collectives == collectives);
  });
}

TEST_CASE("four micro-batches equal one batch", "[ddp][DDP-35]") {
  constexpr int64_t num_parts = 4;
  const auto batch = normal({24, 2}, 3);
  Mlp alone;
  alone(batch).square().mean().backward();
  run_ranks(2, [&](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net);
    const auto parts = share(batch, context).chunk(num_parts);
    const auto accumulate = [&](const at::Tensor& part) {
      (model(part).square().mean() / num_parts).backward();
    };
    {
      const auto guard = model->no_sync();
      for (int64_t i = 0; i + 1 < num_parts; ++i) {
        accumulate(parts[i]);
      }
    }
    accumulate(parts.back());
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      TORCH_CHECK(torch::allclose(
          net->parameters()[i].grad(),
          alone->parameters()[i].grad(),
          1e-10,
          1e-10));
    }
  });
}

TEST_CASE("the module called directly stays local", "[ddp][DDP-36]") {
  run_two([](ScaleRank& self) {
    self.net(self.net->input(self.rank)).backward();
    self.expect(self.rank);
    self.step(10);
    self.expect(11);
    self.net(self.net->input(self.rank)).backward();
    self.expect(11 + self.rank);
  });
}

TEST_CASE("several forwards may share one backward", "[ddp][DDP-32]") {
  run_two([](ScaleRank& self) {
    (self.forward(0) + self.forward(10)).backward();
    self.expect(11);
    const auto guard = self.model->no_sync();
    self.step(0);
    self.expect(11 + self.rank);
  });
}

TEST_CASE("several forwards may each have their backward", "[ddp][DDP-32]") {
  run_two([](ScaleRank& self) {
    const auto first = self.forward(0);
    const auto second = self.forward(10);
    second.backward();
    self.expect(10.5);
    first.backward();
    self.expect(11);
  });
}

TEST_CASE("a retained graph is synced each time", "[ddp][DDP-32]") {
  run_two([](ScaleRank& self) {
    const auto output = self.forward(0);
    output.backward({}, /*retain_graph=*/true);
    self.expect(0.5);
    output.backward();
    self.expect(1);
  });
}

TEST_CASE("forwards without a backward do no harm", "[ddp][DDP-57]") {
  run_two([](ScaleRank& self) {
    for (int i = 0; i < 4; ++i) {
      self.forward(100);
    }
    self.step(0);
    self.expect(0.5);
    self.step(10);
    self.expect(11);
  });
}

TEST_CASE("two losses over two towers are both synced", "[ddp][DDP-55]") {
  for (const bool as_view : {true, false}) {
    run_ranks(2, [&](RankContext& context) {
      Towers net;
      DistributedDataParallel model(
          net,
          Options().gradient_as_bucket_view(as_view));
      for (int step = 1; step <= 2; ++step) {
        auto [left, right] =
            model(net->left->input(static_cast<double>(context.rank())));
        left.backward();
        right.backward();
        TORCH_CHECK(net->left->weight.grad().item<double>() == 0.5 * step);
        TORCH_CHECK(net->right->weight.grad().item<double>() == 0.5 * step);
      }
    });
  }
}

/// Towers whose gradients arrive in the order that the caller wants.
struct OrderedTowersImpl : torch::nn::Module {
  OrderedTowersImpl() : towers(register_module("towers", Towers())) {}
  at::Tensor forward(const at::Tensor& input, bool right_first) {
    // Backward takes the node that was made last first.
    if (right_first) {
      const auto left = towers->left(input);
      return left + towers->right(input + 10);
    }
    const auto right = towers->right(input + 10);
    return right + towers->left(input);
  }
  Towers towers;
};
TORCH_MODULE(OrderedTowers);

TEST_CASE("gradients may arrive in another order on each rank", "[ddp]") {
  const auto nets = run_ranks(2, [](RankContext& context) {
    OrderedTowers net;
    DistributedDataParallel model(
        net,
        Options().first_bucket_bytes(1).bucket_cap_bytes(1));
    const auto rank = static_cast<double>(context.rank());
    model(net->towers->left->input(rank), context.rank() == 0).backward();
    return net;
  });
  for (const auto& net : nets) {
    CHECK(net->towers->left->weight.grad().item<double>() == 0.5);
    CHECK(net->towers->right->weight.grad().item<double>() == 10.5);
  }
}

TEST_CASE("reduction starts while backward runs", "[ddp][DDP-93]") {
  run_ranks(2, [](RankContext& context) {
    Mlp net;
    DistributedDataParallel model(net, Options().first_bucket_bytes(1));
    int64_t at_first_layer = 0;
    net->parameters()[0].register_hook([&](const at::Tensor&) {
      at_first_layer = model->counters().collectives;
    });
    const auto before = model->counters().collectives;
    model(share(normal({kRows, 2}, 1), context)).sum().backward();
    TORCH_CHECK(at_first_layer == before + 1);
    TORCH_CHECK(model->counters().collectives == before + 2);
  });
}

TEST_CASE("a tensor hook acts before the reduction", "[ddp][DDP-84]") {
  run_two([](ScaleRank& self) {
    self.net->weight.register_hook(
        [](const at::Tensor& gradient) { return gradient * 2; });
    self.step(10);
    self.expect(21);
  });
}

TEST_CASE("a backward that creates a graph is synced", "[ddp][DDP-58]") {
  expect_warning("create_graph=True");
  run_two([](ScaleRank& self) {
    for (int step = 1; step <= 3; ++step) {
      self.forward(10).backward({}, std::nullopt, /*create_graph=*/true);
      self.expect(10.5 * step);
    }
  });
}

TEST_CASE("backward may run on another thread", "[ddp]") {
  run_two([](ScaleRank& self) {
    const auto output = self.forward(0);
    std::thread([&] { output.backward(); }).join();
    self.expect(0.5);
  });
}

TEST_CASE("frozen parameters stay without gradient", "[ddp][DDP-80]") {
  const auto nets = run_ranks(2, [](RankContext& context) {
    Towers net;
    net->right->weight.set_requires_grad(false).fill_(context.rank() + 3.0);
    DistributedDataParallel model(net);
    auto [left, right] =
        model(net->left->input(static_cast<double>(context.rank())));
    (left + right).backward();
    return net;
  });
  for (const auto& net : nets) {
    CHECK(net->left->weight.grad().item<double>() == 0.5);
    CHECK(!net->right->weight.grad().defined());
    CHECK(net->right->weight.item<double>() == 3.0);
  }
}

} // namespace
} // namespace tandem::test
