// Parameters that are frozen, ignored, replaced or wrapped twice.
#include "support.h"

#include <cstdint>
#include <vector>

#include "flags.h"
#include "tandem_catch.h"

namespace tandem::test {
namespace {

TEST_CASE("a parameter may be frozen and trained again", "[ddp][DDP-82]") {
  for (const auto& options : all_flags()) {
    if (options.static_graph()) {
      continue; // A graph with other parameters is not static.
    }
    run_ranks(2, [&](RankContext& context) {
      Towers net;
      DistributedDataParallel model(net, options);
      const auto input = net->left->input(static_cast<double>(context.rank()));
      const auto step = [&] {
        const auto [left, right] = model(input);
        (left + right).sum().backward();
      };
      step();
      // Of this rank alone: nobody is to touch it while it is frozen.
      const auto own = static_cast<double>(context.rank() + 7);
      net->right->weight.mutable_grad().fill_(own);
      net->right->weight.set_requires_grad(false);
      step();
      step();
      TORCH_CHECK(value_of(net->right->weight.grad()) == own);
      TORCH_CHECK(value_of(net->left->weight.grad()) == 1.5);
      net->right->weight.set_requires_grad(true);
      model->zero_grad();
      step();
      TORCH_CHECK(value_of(net->right->weight.grad()) == 0.5);
      TORCH_CHECK(value_of(net->left->weight.grad()) == 0.5);
    });
  }
}

TEST_CASE("freezing between forward and backward counts", "[ddp][DDP-82]") {
  run_ranks(2, [](RankContext& context) {
    Towers net;
    DistributedDataParallel model(net);
    for (int64_t step = 0; step < 2; ++step) {
      const auto [left, right] =
          model(net->left->input(static_cast<double>(context.rank())));
      net->right->weight.set_requires_grad(false);
      (left + right).sum().backward();
      TORCH_CHECK(value_of(net->left->weight.grad()) == 0.5 * (step + 1));
      TORCH_CHECK(!net->right->weight.grad().defined());
      net->right->weight.set_requires_grad(true);
    }
  });
}

TEST_CASE("with all frozen a gradient passes through", "[ddp][DDP-82]") {
  for (const auto& options : all_flags()) {
    run_ranks(2, [&](RankContext& context) {
      Scale net(at::kDouble);
      DistributedDataParallel model(net, options);
      net->weight.set_requires_grad(false);
      auto input = net->input(static_cast<double>(context.rank()));
      input.set_requires_grad(true);
      const auto sent = model->counters().collectives;
      (2 * model(input)).sum().backward();
      TORCH_CHECK(value_of(input.grad()) == 2);
      TORCH_CHECK(model->counters().collectives == sent);
    });
  }
}

/// Generator and discriminator, trained in turn and then in one loss.
template <typename Generator, typename Discriminator>
at::Tensor play(
    Generator&& generate,
    Discriminator&& discriminate,
    Mlp& generator,
    torch::nn::Linear& discriminator,
    const RankContext* context) {
  torch::optim::SGD of_generator(generator->parameters(), 0.05);
  torch::optim::SGD of_discriminator(discriminator->parameters(), 0.05);
  const auto set_trained = [](torch::nn::Module& module, bool on) {
    for (auto& parameter : module.parameters()) {
      parameter.set_requires_grad(on);
    }
  };
  for (int64_t round = 0; round < 10; ++round) {
    auto noise = normal({kRows, 2}, static_cast<uint64_t>(round));
    if (context != nullptr) {
      noise = share(noise, *context);
    }
    set_trained(*discriminator, true);
    of_discriminator.zero_grad();
    const auto fake = generate(noise).detach();
    (discriminate(fake).square().mean() -
     discriminate(noise.repeat({1, 2})).mean())
        .backward();
    of_discriminator.step();

    set_trained(*discriminator, false);
    of_generator.zero_grad();
    discriminate(generate(noise)).mean().backward();
    of_generator.step();

    set_trained(*discriminator, true);
    of_generator.zero_grad();
    of_discriminator.zero_grad();
    discriminate(generate(noise)).square().mean().backward();
    of_generator.step();
    of_discriminator.step();
  }
  return torch::cat(
      {flat_parameters(*generator), flat_parameters(*discriminator)});
}

TEST_CASE("two wrappers play generator and discriminator", "[ddp][DDP-85]") {
  const auto make_discriminator = [] {
    torch::nn::Linear net(4, 1);
    net->to(at::kDouble);
    fill(*net, 5);
    return net;
  };
  Mlp generator;
  auto discriminator = make_discriminator();
  const auto expected = play(
      [&](const at::Tensor& input) { return generator(input); },
      [&](const at::Tensor& input) { return discriminator(input); },
      generator,
      discriminator,
      nullptr);
  for (const bool find_unused : {false, true}) {
    const auto results = run_ranks(2, [&](RankContext& context) {
      Mlp own_generator;
      auto own_discriminator = make_discriminator();
      const auto options = Options().find_unused_parameters(find_unused);
      DistributedDataParallel first(own_generator, options);
      DistributedDataParallel second(own_discriminator, options);
      return play(
          [&](const at::Tensor& input) { return first(input); },
          [&](const at::Tensor& input) { return second(input); },
          own_generator,
          own_discriminator,
          &context);
    });
    for (const auto& result : results) {
      CHECK(torch::allclose(result, expected, 1e-10, 1e-10));
    }
  }
}

/// A trained layer beside one whose shape differs from rank to rank.
struct PrivateImpl : torch::nn::Module {
  explicit PrivateImpl(int64_t width)
      : shared(register_module("shared", Scale(at::kDouble))),
        own(register_module("own", torch::nn::Linear(1, width))),
        seen(register_buffer("seen", torch::full({width}, double(width)))) {
    own->to(at::kDouble);
  }
  at::Tensor forward(const at::Tensor& input) {
    return shared(input) + own(input.unsqueeze(0)).sum();
  }
  Scale shared;
  torch::nn::Linear own;
  at::Tensor seen;
};
TORCH_MODULE(Private);

TEST_CASE("what is ignored stays each rank's own", "[ddp][DDP-80]") {
  run_ranks(2, [](RankContext& context) {
    Private net(context.rank() + 1);
    const auto before = net->own->weight.detach().clone();
    DistributedDataParallel model(
        net,
        Options().params_and_buffers_to_ignore({"own.*", "seen"}));
    TORCH_CHECK(is_equal(net->own->weight.detach(), before));
    for (int64_t step = 0; step < 2; ++step) {
      model->zero_grad();
      model(net->shared->input(static_cast<double>(context.rank())))
          .sum()
          .backward();
      TORCH_CHECK(value_of(net->shared->weight.grad()) == 0.5);
      const auto own = static_cast<double>(context.rank());
      TORCH_CHECK(net->own->weight.grad().eq(own).all().item<bool>());
    }
    TORCH_CHECK(net->seen.eq(double(context.rank() + 1)).all().item<bool>());
  });
}

TEST_CASE("a pattern that finds nothing is refused", "[ddp][DDP-80]") {
  const std::vector<std::pair<Options, std::string>> wrong{
      {Options().params_and_buffers_to_ignore({"left.*", "lft.*"}),
       "params_and_buffers_to_ignore"},
      {Options().delay_all_reduce_params({"lft.*"}), "delay_all_reduce_params"},
      {Options().sparse_params({"lft.*"}), "sparse_params"}};
  for (const auto& [options, name] : wrong) {
    const auto errors = try_ranks(2, [&options = options](RankContext&) {
      Towers net;
      DistributedDataParallel model(net, options);
    });
    for (const auto& error : errors) {
      CHECK(is<ConfigError>(error));
      CHECK(contains(text_of(error), name));
      CHECK(contains(text_of(error), "'lft.*'"));
    }
  }
}

struct ReplacedImpl : torch::nn::Module {
  at::Tensor forward(const at::Tensor& input) {
    return layer(input);
  }
  torch::nn::Linear layer = register_module("layer", torch::nn::Linear(2, 2));
};
TORCH_MODULE(Replaced);

TEST_CASE("a module replaced after wrapping is named", "[ddp][DDP-83]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Replaced net;
    DistributedDataParallel model(net);
    net->layer = net->replace_module("layer", torch::nn::Linear(2, 2));
    model(torch::ones({1, 2}));
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "module 'layer'"));
    CHECK(contains(text_of(error), "wrap the module again"));
  }
}

TEST_CASE("a parameter in two wrappers is refused", "[ddp][DDP-86]") {
  const auto errors = try_ranks(2, [](RankContext&) {
    Replaced net;
    { DistributedDataParallel first(net); }
    DistributedDataParallel second(net);
    DistributedDataParallel third(net->layer);
  });
  for (const auto& error : errors) {
    CHECK(is<ConfigError>(error));
    CHECK(contains(text_of(error), "parameter 'weight'"));
    CHECK(contains(text_of(error), "one wrapper at a time"));
  }
}

} // namespace
} // namespace tandem::test
