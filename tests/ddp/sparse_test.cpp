#include "support.h"

#include <cstdint>
#include <memory>
#include <vector>

#include <tandem/ddp/comm_hooks.h>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

constexpr int64_t kWords = 10;

/// Rows of this rank for one step: some words come on both ranks, some on one.
at::Tensor words_of(int64_t rank, int64_t step) {
  return torch::tensor({rank, (rank + step) % kWords, int64_t(5), int64_t(5)});
}

torch::nn::EmbeddingBag make_bag() {
  torch::nn::EmbeddingBag net(torch::nn::EmbeddingBagOptions(kWords, kWords)
                                  .sparse(true)
                                  .mode(torch::kSum));
  net->to(at::kDouble);
  fill(*net, 3);
  return net;
}

/// Weights after three steps, on both ranks' words or on one's.
template <typename Forward>
at::Tensor train_bag(
    torch::nn::EmbeddingBag& net,
    const std::vector<int64_t>& ranks,
    Forward forward) {
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int64_t step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    std::vector<at::Tensor> losses;
    for (const int64_t rank : ranks) {
      losses.push_back(
          forward(words_of(rank, step).view({2, 2})).softmax(1).square().sum());
    }
    torch::stack(losses).mean().backward();
    TORCH_CHECK(net->weight.grad().is_sparse());
    optimizer.step();
  }
  return net->weight.detach().clone();
}

void expect_like_single(
    const Options& options,
    const std::function<void(
        DistributedDataParallel<torch::nn::EmbeddingBagImpl>&)>& prepare = {}) {
  for (const int64_t world : {2, 3}) {
    std::vector<int64_t> all;
    for (int64_t rank = 0; rank < world; ++rank) {
      all.push_back(rank);
    }
    auto alone = make_bag();
    const auto expected = train_bag(alone, all, [&](const at::Tensor& words) {
      return alone(words);
    });
    const auto results = run_ranks(world, [&](RankContext& context) {
      auto net = make_bag();
      DistributedDataParallel model(net, options);
      if (prepare) {
        prepare(model);
      }
      return train_bag(net, {context.rank()}, [&](const at::Tensor& words) {
        return model(words);
      });
    });
    for (const auto& result : results) {
      CHECK(torch::allclose(result, expected, 1e-10, 1e-10));
      CHECK(torch::equal(result, results[0]));
    }
  }
}

TEST_CASE("sparse gradients are averaged as sparse", "[ddp][DDP-74]") {
  for (const bool as_view : {true, false}) {
    expect_like_single(Options().gradient_as_bucket_view(as_view));
  }
  for (const auto& options : with_unused()) {
    expect_like_single(options);
  }
  for (const auto& options : with_static_graph()) {
    expect_like_single(options);
  }
}

TEST_CASE("a hook leaves sparse gradients alone", "[ddp][hooks][HK-11]") {
  expect_like_single({}, [](auto& model) {
    model->register_comm_hook(ddp::fp16_compress_hook());
  });
}

/// Words into a layer; another layer is frozen.
struct WordsImpl : torch::nn::Module {
  WordsImpl() {
    to(at::kDouble);
    fill(*this, 9);
    frozen->weight.set_requires_grad(false);
  }
  at::Tensor forward(const at::Tensor& words) {
    return frozen(layer(torch::embedding(table, words, -1, false, true)));
  }
  at::Tensor table = register_parameter("table", torch::ones({kWords, 2}));
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 2));
  torch::nn::Linear frozen = register_module(
      "frozen",
      torch::nn::Linear(torch::nn::LinearOptions(2, 2).bias(false)));
};
TORCH_MODULE(Words);

TEST_CASE("sparse, dense and frozen parameters mix", "[ddp][DDP-75]") {
  const auto train_words = [](Words& net, auto forward) {
    torch::optim::SGD optimizer(net->parameters(), 0.1);
    for (int64_t step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      forward(step).backward();
      optimizer.step();
    }
    return flat_parameters(*net);
  };
  Words alone;
  const auto expected = train_words(alone, [&](int64_t step) {
    return alone(torch::cat({words_of(0, step), words_of(1, step)}))
        .square()
        .mean();
  });
  for (const bool as_view : {true, false}) {
    const auto results = run_ranks(2, [&](RankContext& context) {
      Words net;
      DistributedDataParallel model(
          net,
          Options().sparse_params({"tab*"}).gradient_as_bucket_view(as_view));
      const auto frozen = net->frozen->weight.clone();
      auto result = train_words(net, [&](int64_t step) {
        return model(words_of(context.rank(), step)).square().mean();
      });
      TORCH_CHECK(net->table.grad().is_sparse());
      TORCH_CHECK(torch::equal(net->frozen->weight, frozen));
      return result;
    });
    for (const auto& result : results) {
      CHECK(torch::allclose(result, expected, 1e-10, 1e-10));
    }
  }
}

TEST_CASE("a dense gradient that was to be sparse is named", "[ddp]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Scale net;
    DistributedDataParallel model(net, Options().sparse_params({"weight"}));
    model(net->input(1)).sum().backward();
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'weight'"));
    CHECK(contains(text_of(error), "sparse_params"));
  }
}

} // namespace
} // namespace tandem::test
