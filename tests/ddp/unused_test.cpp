#include "support.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "choice.h"
#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

TEST_CASE("a parameter unused on one rank gets the others'", "[ddp][DDP-38]") {
  for (const auto& options : with_unused()) {
    for (const int64_t world : {2, 3}) {
      run_ranks(world, [&](RankContext& context) {
        Choice net;
        DistributedDataParallel model(net, options);
        for (int64_t step = 0; step < 3; ++step) {
          model->zero_grad();
          const bool is_first = context.rank() == 0;
          model(
              number(static_cast<double>(context.rank() + 1)),
              is_first ? 0b111 : 0b101)
              .sum()
              .backward();
          const auto size = static_cast<double>(world);
          TORCH_CHECK(
              std::abs(value_of(net->grad(1)) - 1 / size) < 1e-12,
              value_of(net->grad(1)));
          TORCH_CHECK(
              std::abs(value_of(net->grad(0)) - (size + 1) / 2) < 1e-12);
        }
      });
    }
  }
}

TEST_CASE("a parameter unused everywhere is left alone", "[ddp][DDP-39]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Choice net;
      DistributedDataParallel model(net, options);
      Choice alone;
      torch::optim::AdamWOptions adam(0.1);
      torch::optim::AdamW optimizer(net->parameters(), adam);
      torch::optim::AdamW optimizer_alone(alone->parameters(), adam);
      for (int64_t step = 0; step < 6; ++step) {
        const int64_t bits = step % 2 == 0 ? 0b101 : 0b111;
        optimizer.zero_grad();
        optimizer_alone.zero_grad();
        model(number(static_cast<double>(context.rank())), bits)
            .sum()
            .backward();
        alone(number(0.5), bits).sum().backward();
        TORCH_CHECK(net->grad(1).defined() == (bits == 0b111), "step ", step);
        optimizer.step();
        optimizer_alone.step();
        TORCH_CHECK(
            torch::equal(flat_parameters(*net), flat_parameters(*alone)));
      }
    });
  }
}

TEST_CASE("what is unused everywhere keeps its gradient", "[ddp][DDP-39]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Choice net;
      DistributedDataParallel model(net, options);
      model(number(1), 0b111).sum().backward();
      // Each rank's own, so that any averaging would show.
      const auto own = 0.1 * static_cast<double>(context.rank() + 1);
      net->grad(1).fill_(own);
      model(number(1), 0b101).sum().backward();
      TORCH_CHECK(value_of(net->grad(1)) == own);
      TORCH_CHECK(value_of(net->grad(0)) == 2);
      TORCH_CHECK(
          model->logging_data().unused_params ==
          std::vector<std::string>{"layers.1.weight"});
    });
  }
}

TEST_CASE("what accumulated under no_sync counts as used", "[ddp][DDP-39]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Choice net;
      DistributedDataParallel model(net, options);
      {
        const auto guard = model->no_sync();
        model(number(1), context.rank() == 0 ? 0b111 : 0b101).sum().backward();
      }
      model(number(1), 0b101).sum().backward();
      TORCH_CHECK(value_of(net->grad(1)) == 0.5);
      TORCH_CHECK(value_of(net->grad(0)) == 2);
    });
  }
}

TEST_CASE("an unused parameter is named without the flag", "[ddp][DDP-40]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Choice net;
    DistributedDataParallel model(net);
    model(number(1), 0b011).sum().backward();
    model(number(1), 0b011);
  });
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    const auto text = text_of(errors[rank]);
    CHECK(is<ConfigError>(errors[rank]));
    CHECK(contains(text, rank_text(rank, 2)));
    CHECK(contains(text, "'layers.2.weight'"));
    CHECK_FALSE(contains(text, "'layers.0.weight'"));
    CHECK_FALSE(contains(text, "'layers.1.weight'"));
    CHECK(contains(text, "find_unused_parameters(true)"));
  }
}

/// Nested layers, one of which is used.
struct SubImpl : torch::nn::Module {
  struct LinImpl : torch::nn::Module {
    torch::nn::Linear a = register_module("a", torch::nn::Linear(2, 2));
    torch::nn::Linear b = register_module("b", torch::nn::Linear(2, 2));
  };
  std::shared_ptr<LinImpl> lin =
      register_module("lin", std::make_shared<LinImpl>());
  torch::nn::Embedding emb = register_module("emb", torch::nn::Embedding(3, 2));
};

struct NestedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return sub->lin->a(input);
  }
  std::shared_ptr<SubImpl> sub =
      register_module("sub", std::make_shared<SubImpl>());
};
TORCH_MODULE(Nested);

TEST_CASE("the unused ones are listed exactly", "[ddp][DDP-42]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Nested net;
    DistributedDataParallel model(
        net,
        Options().params_and_buffers_to_ignore({"sub.lin.b.bias"}));
    for (int64_t step = 0; step < 2; ++step) {
      model(torch::ones({1, 2})).sum().backward();
    }
  });
  for (const auto& error : errors) {
    const auto text = text_of(error);
    CHECK(contains(text, "'sub.emb.weight'"));
    CHECK(contains(text, "'sub.lin.b.weight'"));
    CHECK(contains(text, "(2 of 4)"));
    CHECK_FALSE(contains(text, "sub.lin.a"));
    CHECK_FALSE(contains(text, "sub.lin.b.bias"));
  }
}

/// Returns each layer's output in a place of its own.
struct ScatteredImpl : torch::nn::Module {
  using Output = std::tuple<
      std::vector<at::Tensor>,
      std::map<std::string, std::pair<at::Tensor, int64_t>>,
      std::optional<at::Tensor>>;
  Output forward(const at::Tensor& input) {
    return {
        {input * 1, first(input)},
        {{"key", {second(input), 3}}},
        third(input)};
  }
  Scale first = register_module("first", Scale(at::kDouble));
  Scale second = register_module("second", Scale(at::kDouble));
  Scale third = register_module("third", Scale(at::kDouble));
};
TORCH_MODULE(Scattered);

TEST_CASE("outputs inside structures are found", "[ddp][DDP-43]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Scattered net;
      DistributedDataParallel model(net, options);
      const auto [list, map, last] =
          model(number(static_cast<double>(context.rank())));
      (list[1] + map.at("key").first + *last).sum().backward();
      for (const auto& parameter : net->parameters()) {
        TORCH_CHECK(value_of(parameter.grad()) == 0.5);
      }
      TORCH_CHECK(model->logging_data().unused_params.empty());
    });
  }
}

TEST_CASE("an output that the loss leaves out", "[ddp][DDP-44]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Towers net;
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < 3; ++step) {
        model->zero_grad();
        const auto [left, right] =
            model(number(static_cast<double>(context.rank())));
        right.sum().backward();
        TORCH_CHECK(!net->left->weight.grad().defined());
        TORCH_CHECK(value_of(net->right->weight.grad()) == 0.5);
      }
    });
  }
}

/// One output has no graph, or none has.
struct DetachedImpl : torch::nn::Module {
  std::pair<at::Tensor, at::Tensor> forward(
      const at::Tensor& input,
      bool is_trained) {
    const auto output = layer(input);
    return {input.detach(), is_trained ? output : output.detach()};
  }
  Scale layer = register_module("layer", Scale(at::kDouble));
};
TORCH_MODULE(Detached);

TEST_CASE("outputs may come without a graph", "[ddp][DDP-45]") {
  for (const auto& options : all_flags()) {
    run_ranks(2, [&](RankContext& context) {
      Detached net;
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < 6; ++step) {
        model->zero_grad();
        const auto input = number(static_cast<double>(context.rank()));
        model(input, false);
        model(input, true).second.sum().backward();
        TORCH_CHECK(value_of(net->layer->weight.grad()) == 0.5, "step ", step);
      }
    });
  }
}

/// Hands its layer to the caller.
struct LentImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return inside(input);
  }
  Scale inside = register_module("inside", Scale(at::kDouble));
  Scale outside = register_module("outside", Scale(at::kDouble));
};
TORCH_MODULE(Lent);

TEST_CASE("a parameter used outside of forward", "[ddp][DDP-46]") {
  const auto use_outside = [](RankContext& context, const Options& options) {
    Lent net;
    DistributedDataParallel model(net, options);
    for (int64_t step = 0; step < 3; ++step) {
      model->zero_grad();
      const auto input = number(static_cast<double>(context.rank()));
      net->outside(model(input)).sum().backward();
      TORCH_CHECK(value_of(net->outside->weight.grad()) == 0.5);
    }
  };
  run_ranks(2, [&](RankContext& context) { use_outside(context, {}); });
  const auto errors = try_ranks(2, [&](RankContext& context) {
    use_outside(context, Options().find_unused_parameters(true));
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "'outside.weight'"));
    CHECK(contains(text_of(error), "inside forward only"));
  }
}

TEST_CASE("forwards may go without a backward", "[ddp][DDP-57]") {
  for (const auto& options : all_flags()) {
    run_ranks(2, [&](RankContext& context) {
      Choice net;
      DistributedDataParallel model(net, options);
      const auto input = number(static_cast<double>(context.rank()));
      std::vector<at::Tensor> ignored;
      for (int64_t i = 0; i < 4; ++i) {
        ignored.push_back(model(input, 0b111));
      }
      for (int64_t step = 0; step < 4; ++step) {
        model->zero_grad();
        model(input, 0b111).sum().backward();
        for (size_t i = 0; i < 3; ++i) {
          TORCH_CHECK(value_of(net->grad(i)) == 0.5);
        }
      }
    });
  }
}

/// Its backward gives no gradient.
struct NoGradient : torch::autograd::Function<NoGradient> {
  static at::Tensor forward(
      torch::autograd::AutogradContext*,
      const at::Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext*,
      const torch::autograd::variable_list&) {
    return {at::Tensor()};
  }
};

struct BlockedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return open(input) + NoGradient::apply(blocked->weight) * input;
  }
  Scale open = register_module("open", Scale(at::kDouble));
  Scale blocked = register_module("blocked", Scale(at::kDouble));
};
TORCH_MODULE(Blocked);

TEST_CASE("an undefined gradient stays undefined", "[ddp][DDP-62]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Blocked net;
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < 3; ++step) {
        model->zero_grad();
        model(number(static_cast<double>(context.rank()))).sum().backward();
        TORCH_CHECK(!net->blocked->weight.grad().defined());
        TORCH_CHECK(value_of(net->open->weight.grad()) == 0.5);
      }
    });
  }
}

TEST_CASE("two losses over two towers, unused looked for", "[ddp][DDP-55]") {
  for (const auto& options : with_unused()) {
    run_ranks(2, [&](RankContext& context) {
      Towers net;
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < 3; ++step) {
        model->zero_grad();
        const auto [left, right] =
            model(number(static_cast<double>(context.rank())));
        left.sum().backward();
        (2 * right).sum().backward();
        TORCH_CHECK(value_of(net->left->weight.grad()) == 0.5);
        TORCH_CHECK(value_of(net->right->weight.grad()) == 1);
      }
    });
  }
}

} // namespace
} // namespace tandem::test
