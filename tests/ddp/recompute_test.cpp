// Checkpoints of activations, and optimizers that step inside backward.
#include "support.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/ddp/checkpoint.h>
#include <tandem/ddp/optimizer_in_backward.h>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

/// Layers with statistics and random numbers, each checkpointed on demand.
struct DeepImpl : torch::nn::Module {
  explicit DeepImpl(bool checkpointed, double dropout = 0)
      : is_checkpointed(checkpointed) {
    for (int64_t i = 0; i < 3; ++i) {
      blocks->push_back(torch::nn::Sequential(
          torch::nn::Linear(2, 2),
          torch::nn::BatchNorm1d(2),
          torch::nn::Tanh(),
          torch::nn::Dropout(dropout)));
    }
    to(at::kDouble);
    fill(*this, 3);
  }
  at::Tensor forward(const at::Tensor& input) {
    auto output = input;
    for (const auto& block : *blocks) {
      const auto layers =
          std::dynamic_pointer_cast<torch::nn::SequentialImpl>(block);
      output = is_checkpointed ? ddp::checkpoint(layers, output)
                               : layers->forward(output);
    }
    return output;
  }

  bool is_checkpointed;
  torch::nn::ModuleList blocks =
      register_module("blocks", torch::nn::ModuleList());
};
TORCH_MODULE(Deep);

std::vector<at::Tensor> state_after_steps(
    Deep net,
    const RankContext& context,
    const Options& options) {
  DistributedDataParallel model(net, options);
  std::vector<at::Tensor> state{test::train(
      [&](const at::Tensor& input) { return model(input); },
      *net,
      &context,
      4)};
  for (const auto& buffer : net->buffers()) {
    state.push_back(buffer.clone());
  }
  return state;
}

TEST_CASE("a checkpoint changes nothing but memory", "[ddp][DDP-51]") {
  for (const auto& options : all_flags()) {
    run_ranks(2, [&](RankContext& context) {
      const auto expected = state_after_steps(Deep(false), context, options);
      const auto actual = state_after_steps(Deep(true), context, options);
      for (size_t i = 0; i < expected.size(); ++i) {
        TORCH_CHECK(torch::equal(actual[i], expected[i]), i);
      }
    });
  }
}

/// One layer, recomputed twice in a row.
struct TwiceImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return ddp::checkpoint(layer, ddp::checkpoint(layer, input));
  }
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 2));
};
TORCH_MODULE(Twice);

TEST_CASE("a layer may be recomputed twice", "[ddp][DDP-51]") {
  torch::nn::Linear plain(2, 2);
  plain->to(at::kDouble);
  fill(*plain, 3);
  const auto batch = normal({8, 2}, 4);
  plain(plain(batch)).square().mean().backward();
  for (const auto& options : all_flags()) {
    run_ranks(2, [&](RankContext& context) {
      Twice net;
      net->to(at::kDouble);
      fill(*net, 3);
      DistributedDataParallel model(net, options);
      for (int64_t step = 0; step < 2; ++step) {
        model->zero_grad();
        model(share(batch, context)).square().mean().backward();
        TORCH_CHECK(are_close(grads_of(*net), grads_of(*plain)));
      }
    });
  }
}

TEST_CASE("a recomputation draws the same numbers", "[ddp][checkpoint]") {
  const auto gradients_of = [](bool is_checkpointed) {
    torch::manual_seed(5);
    Deep net(is_checkpointed, 0.5);
    const auto input = normal({6, 2}, 1);
    net(input).square().sum().backward();
    auto result = snapshot(grads_of(*net));
    // What is drawn after backward must not depend on the checkpoint either.
    result.push_back(torch::rand({3}));
    return result;
  };
  const auto expected = gradients_of(false);
  const auto actual = gradients_of(true);
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(torch::equal(actual[i], expected[i]));
  }
}

/// Several inputs and outputs, some without a gradient.
struct ManyImpl : torch::nn::Module {
  std::pair<std::vector<at::Tensor>, at::Tensor> forward(
      const std::pair<at::Tensor, at::Tensor>& inputs,
      int64_t times) {
    const auto sum = layer(inputs.first) * times;
    return {{sum, inputs.second}, sum.argmax(1)};
  }
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 2));
};
TORCH_MODULE(Many);

TEST_CASE("a checkpoint keeps the shape of a call", "[ddp][checkpoint]") {
  Many net;
  const auto input = torch::ones({3, 2}).requires_grad_();
  const auto other = torch::zeros({1});
  const auto plain = net->forward({input, other}, 2);
  const auto [list, best] =
      ddp::checkpoint(net, std::make_pair(input, other), int64_t(2));
  CHECK(torch::equal(list[0], plain.first[0]));
  CHECK(torch::equal(list[1], other));
  CHECK(torch::equal(best, plain.second));
  CHECK_FALSE(best.requires_grad());
  const auto expected = torch::autograd::grad(
      {plain.first[0].sum()},
      {input, net->layer->weight});
  list[0].sum().backward();
  CHECK(torch::equal(input.grad(), expected[0]));
  CHECK(torch::equal(net->layer->weight.grad(), expected[1]));
  const torch::NoGradGuard no_grad;
  CHECK_FALSE(ddp::checkpoint(net, std::make_pair(input, other), int64_t(2))
                  .first[0]
                  .requires_grad());
}

TEST_CASE("a checkpoint refuses second derivatives", "[ddp][checkpoint]") {
  torch::nn::Linear net(2, 2);
  const auto input = torch::ones({1, 2}).requires_grad_();
  const auto output = ddp::checkpoint(net, input).sum();
  CHECK_THROWS_AS(
      torch::autograd::grad({output}, {input}, {}, true, /*create_graph=*/true),
      ConfigError);
}

template <typename MakeOptimizer>
void expect_like_step_after(MakeOptimizer make, const Options& options) {
  const auto make_net = [] {
    torch::nn::Sequential net(
        torch::nn::Linear(2, 3),
        torch::nn::Linear(3, 3),
        torch::nn::Linear(3, 1));
    net->to(at::kDouble);
    fill(*net, 8);
    return net;
  };
  for (const int64_t world : {1, 2}) {
    run_ranks(world, [&](RankContext& context) {
      const auto plain_net = make_net();
      const auto net = make_net();
      DistributedDataParallel plain(plain_net, options);
      DistributedDataParallel model(net, options);
      const auto optimizer = make(plain_net->parameters());
      const OptimizerInBackward in_backward(model, make);
      TORCH_CHECK(in_backward.optimizers().size() == 6);
      for (int64_t step = 0; step < 8; ++step) {
        const auto batch =
            share(normal({kRows, 2}, static_cast<uint64_t>(step)), context);
        optimizer->zero_grad();
        if (step % 2 == 1) {
          const auto guard = plain->no_sync();
          plain(batch).sum().backward();
          const auto other = model->no_sync();
          model(batch).sum().backward();
        }
        plain(batch).square().mean().backward();
        model(batch).square().mean().backward();
        optimizer->step();
        TORCH_CHECK(torch::allclose(
            flat_parameters(*net),
            flat_parameters(*plain_net),
            1e-12,
            1e-12));
        for (const auto& grad : grads_of(*net)) {
          TORCH_CHECK(!grad.defined());
        }
      }
    });
  }
}

TEST_CASE("an optimizer may step inside backward", "[ddp][DDP-90]") {
  for (const bool as_view : {true, false}) {
    const auto options = Options().gradient_as_bucket_view(as_view);
    expect_like_step_after(
        [](const std::vector<at::Tensor>& parameters) {
          return std::make_unique<torch::optim::SGD>(
              parameters,
              torch::optim::SGDOptions(0.1).momentum(0.5));
        },
        options);
    expect_like_step_after(
        [](const std::vector<at::Tensor>& parameters) {
          return std::make_unique<torch::optim::Adam>(
              parameters,
              torch::optim::AdamOptions(0.1));
        },
        options);
  }
}

TEST_CASE("a wrapper takes one optimizer in backward", "[ddp][DDP-90]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Scale net;
    DistributedDataParallel model(net);
    const auto make = [](const std::vector<at::Tensor>& parameters) {
      return std::make_unique<torch::optim::SGD>(
          parameters,
          torch::optim::SGDOptions(0.1));
    };
    { const OptimizerInBackward gone(model, make); }
    const OptimizerInBackward first(model, make);
    const OptimizerInBackward second(model, make);
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "OptimizerInBackward"));
  }
}

} // namespace
} // namespace tandem::test
