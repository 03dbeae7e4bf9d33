#include <thread>

#include <torch/csrc/autograd/utils/lambda_post_hook.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// A net, its wrapper over `devices` replicas, and the same net unwrapped.
struct Pair {
  explicit Pair(size_t devices = 2, int64_t bucket_cap_bytes = 100)
      : net(make_base<ConvLinearImpl>(1)),
        plain(make_net<ConvLinearImpl>(1)),
        model(net, on_devices(devices).bucket_cap_bytes(bucket_cap_bytes)) {}

  at::Tensor wrapped_loss(const at::Tensor& input) {
    return model(input).sin().sum();
  }
  at::Tensor plain_loss(const at::Tensor& input) {
    return plain->forward(input).sin().sum();
  }
  bool grads_agree() const {
    return are_close(grads_of(*net), grads_of(*plain));
  }

  std::shared_ptr<ConvLinearImpl> net;
  std::shared_ptr<ConvLinearImpl> plain;
  tandem::DataParallel<ConvLinearImpl> model;
};

const at::Tensor& input_a() {
  static const auto input = ConvLinearImpl::input(5, 11);
  return input;
}

const at::Tensor& input_b() {
  static const auto input = ConvLinearImpl::input(6, 12);
  return input;
}

/// Squared norm of the loss's gradients by input and parameters, and the loss.
template <typename Forward>
at::Tensor penalty(const Forward& forward, const torch::nn::Module& module) {
  const auto input = input_a().clone().requires_grad_();
  const auto loss = forward(input).sin().sum();
  auto total = loss;
  auto variables = module.parameters();
  variables.push_back(input);
  for (const auto& gradient : torch::autograd::grad(
           {loss},
           variables,
           {},
           std::nullopt,
           /*create_graph=*/true)) {
    total = total + gradient.pow(2).sum().to(total.device());
  }
  return total;
}

} // namespace

TEST_CASE("two forwards serve one joint backward", "[dp]") {
  for (const size_t devices : {2, 3, 4}) {
    Pair pair(devices);
    (pair.plain_loss(input_a()) + pair.plain_loss(input_b())).backward();
    (pair.wrapped_loss(input_a()) + pair.wrapped_loss(input_b())).backward();
    CHECK(pair.grads_agree());
  }
}

TEST_CASE("two forwards serve two backwards in either order", "[dp]") {
  for (const bool swapped : {false, true}) {
    Pair pair;
    pair.plain_loss(input_a()).backward();
    pair.plain_loss(input_b()).backward();
    auto first = pair.wrapped_loss(input_a());
    auto second = pair.wrapped_loss(input_b());
    if (swapped) {
      std::swap(first, second);
    }
    first.backward();
    second.backward();
    CHECK(pair.grads_agree());
  }
}

TEST_CASE("retained graph runs twice and then is gone", "[dp]") {
  Pair pair;
  const auto expected = pair.plain_loss(input_a());
  const auto loss = pair.wrapped_loss(input_a());
  for (const auto& each : {expected, loss}) {
    each.backward({}, /*keep_graph=*/true);
    each.backward();
  }
  CHECK(pair.grads_agree());
  CHECK_THROWS_AS(loss.backward(), c10::Error);
}

TEST_CASE("autograd::grad of all or one parameter leaves .grad alone", "[dp]") {
  Pair pair(3);
  const auto expected = torch::autograd::grad(
      {pair.plain_loss(input_a())},
      pair.plain->parameters());
  CHECK(are_close(
      torch::autograd::grad(
          {pair.wrapped_loss(input_a())},
          pair.net->parameters()),
      expected));
  CHECK(is_close(
      torch::autograd::grad(
          {pair.wrapped_loss(input_a())},
          {pair.net->linear->weight})[0],
      expected[2]));
  CHECK_FALSE(pair.net->linear->weight.grad().defined());

  const std::vector<at::Tensor> inputs{pair.net->conv->weight};
  pair.wrapped_loss(input_a()).backward({}, false, false, inputs);
  CHECK(is_close(pair.net->conv->weight.grad(), expected[0]));
  CHECK_FALSE(pair.net->linear->weight.grad().defined());
}

TEST_CASE("double backward through all replicas equals the plain one", "[dp]") {
  for (const size_t devices : {2, 3}) {
    for (const bool forward_between : {false, true}) {
      Pair pair(devices);
      penalty(
          [&](const auto& x) { return pair.plain->forward(x); },
          *pair.plain)
          .backward();
      const auto total = penalty(
          [&](auto x) {
            auto output = pair.model(x);
            if (forward_between) {
              const torch::NoGradGuard no_grad;
              pair.model(input_b());
            }
            return output;
          },
          *pair.net);
      total.backward();
      CHECK(pair.grads_agree());
    }
  }
}

TEST_CASE("grad with create_graph works inside each replica", "[dp]") {
  const auto net = make_net<torch::nn::LinearImpl>(1, 2, 1);
  struct GradInside : torch::nn::Cloneable<GradInside> {
    explicit GradInside(std::shared_ptr<torch::nn::LinearImpl> given)
        : start(std::move(given)) {
      reset();
    }
    void reset() override {
      weight = register_parameter("weight", start->weight.detach().clone());
    }
    at::Tensor forward(const at::Tensor& input) {
      const auto x = input.detach().requires_grad_();
      const auto y = torch::tanh(x.mm(weight.t()));
      return torch::autograd::grad({y.sum()}, {x}, {}, true, true)[0];
    }
    std::shared_ptr<torch::nn::LinearImpl> start;
    at::Tensor weight;
  };
  const auto inside = on_first(std::make_shared<GradInside>(net));
  const auto reference = std::make_shared<GradInside>(net);
  tandem::DataParallel model(inside, on_devices(4));
  const auto input = normal({9, 2}, 3);
  model(input).pow(2).sum().backward();
  reference->forward(input).pow(2).sum().backward();
  CHECK(is_close(inside->weight.grad(), reference->weight.grad()));
}

TEST_CASE("change between forward and backward is the plain error", "[dp]") {
  const auto error_after = [](auto&& forward, auto& module, bool again) {
    const auto loss = forward(input_a()).sin().sum();
    {
      const torch::NoGradGuard no_grad;
      module.linear->weight.mul_(1.5);
    }
    if (again) {
      forward(input_b());
    }
    return message_thrown_by([&] { loss.backward(); });
  };
  for (const bool again : {false, true}) {
    Pair pair;
    const auto plain = error_after(
        [&](const auto& x) { return pair.plain->forward(x); },
        *pair.plain,
        again);
    const auto wrapped =
        error_after([&](auto x) { return pair.model(x); }, *pair.net, again);
    CHECK(contains(plain, "modified by an inplace operation"));
    CHECK(contains(wrapped, "modified by an inplace operation"));
  }
}

TEST_CASE("change of what only replica 1 used is the plain error", "[dp]") {
  struct SecondChunkOnly : torch::nn::Cloneable<SecondChunkOnly> {
    SecondChunkOnly() {
      reset();
    }
    void reset() override {
      weight = register_parameter("weight", torch::ones({2}, at::kDouble));
    }
    at::Tensor forward(const at::Tensor& input) {
      return input.size(0) == 2 ? (input * weight).sin() * weight : input;
    }
    at::Tensor weight;
  };
  const auto net = on_first(std::make_shared<SecondChunkOnly>());
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({5, 2}, 1); // chunks of 3 and 2 rows
  const auto loss = model(input).sum();
  {
    const torch::NoGradGuard no_grad;
    net->weight.mul_(1.5);
  }
  model(input);
  CHECK(contains(
      message_thrown_by([&] { loss.backward(); }),
      "modified by an inplace operation"));
}

TEST_CASE("wrapper may be destroyed before backward", "[dp]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto plain = make_net<ConvLinearImpl>(1);
  at::Tensor loss;
  {
    tandem::DataParallel model(net, on_devices(3));
    loss = model(input_a()).sin().sum() +
        net->forward(input_b().to(device())).sin().sum();
  }
  loss.backward();
  (plain->forward(input_a()).sin().sum() +
   plain->forward(input_b()).sin().sum())
      .backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("backward from two threads adds both gradients", "[dp]") {
  Pair pair(3);
  pair.plain_loss(input_a()).backward();
  pair.plain_loss(input_b()).backward();
  const auto first = pair.wrapped_loss(input_a());
  const auto second = pair.wrapped_loss(input_b());
  std::thread other([&] { first.backward(); });
  second.backward();
  other.join();
  CHECK(pair.grads_agree());
}

TEST_CASE("forward and backward may be on different threads", "[dp]") {
  Pair pair(3);
  pair.plain_loss(input_a()).backward();
  at::Tensor loss;
  std::thread([&] { loss = pair.wrapped_loss(input_a()); }).join();
  std::thread([&] { loss.backward(); }).join();
  CHECK(pair.grads_agree());
  pair.plain_loss(input_b()).backward();
  std::thread([&] { loss = pair.wrapped_loss(input_b()); }).join();
  loss.backward();
  CHECK(pair.grads_agree());
}

TEST_CASE("tensor hook sees the summed gradient once", "[dp][DP-49]") {
  for (const bool before_wrapping : {true, false}) {
    const auto net = make_base<ConvLinearImpl>(1);
    const auto plain = make_net<ConvLinearImpl>(1);
    int calls = 0;
    at::Tensor seen;
    const auto add_hook = [&] {
      net->linear->weight.register_hook([&](const at::Tensor& gradient) {
        ++calls;
        seen = gradient.clone();
        return gradient * 2;
      });
    };
    if (before_wrapping) {
      add_hook();
    }
    tandem::DataParallel model(net, on_devices(3));
    if (!before_wrapping) {
      add_hook();
    }
    model(input_a()).sin().sum().backward();
    plain->forward(input_a()).sin().sum().backward();
    CHECK(calls == 1);
    CHECK(is_close(seen, plain->linear->weight.grad()));
    CHECK(
        is_close(net->linear->weight.grad(), 2 * plain->linear->weight.grad()));
  }
}

TEST_CASE("hooks of a parameter that nothing used are not called", "[dp]") {
  struct Unused : torch::nn::Cloneable<Unused> {
    Unused() {
      reset();
    }
    void reset() override {
      used = register_parameter("used", torch::ones({2}, torch::kDouble));
      spare = register_parameter("spare", torch::ones({2}, torch::kDouble));
      posted = register_parameter("posted", torch::ones({2}, torch::kDouble));
    }
    at::Tensor forward(const at::Tensor& input) {
      return input * used;
    }
    at::Tensor used;
    at::Tensor spare;
    at::Tensor posted;
  };
  const auto net = on_first(std::make_shared<Unused>());
  int calls = 0;
  net->spare.register_hook([&](const at::Tensor& gradient) {
    ++calls;
    return gradient;
  });
  const auto accumulator = torch::autograd::impl::grad_accumulator(net->posted);
  accumulator->add_post_hook(
      std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [&](const torch::autograd::variable_list& outputs,
              const torch::autograd::variable_list&) {
            ++calls;
            return outputs;
          }));
  tandem::DataParallel model(net, on_devices(2));
  model(normal({4, 2}, 1)).sum().backward();
  CHECK(calls == 0);
  CHECK(net->used.grad().defined());
}

TEST_CASE("freezing and unfreezing reach the replicas", "[dp]") {
  Pair pair(3, 25 << 20);
  pair.model(input_a()).sum().backward();
  pair.net->zero_grad();
  pair.net->linear->weight.set_requires_grad(false);
  pair.wrapped_loss(input_a()).backward();
  CHECK_FALSE(pair.net->linear->weight.grad().defined());
  CHECK_FALSE(pair.model->replica(1)->linear->weight.requires_grad());
  CHECK(pair.net->conv->weight.grad().defined());
  pair.net->zero_grad();
  pair.net->linear->weight.set_requires_grad(true);
  pair.wrapped_loss(input_a()).backward();
  pair.plain_loss(input_a()).backward();
  CHECK(pair.grads_agree());
}

TEST_CASE("parameter frozen at construction trains once unfrozen", "[dp]") {
  const auto net = make_base<ConvLinearImpl>(1);
  const auto plain = make_net<ConvLinearImpl>(1);
  net->conv->weight.set_requires_grad(false);
  tandem::DataParallel model(net, on_devices(3));
  model(input_a()).sin().sum().backward();
  CHECK_FALSE(net->conv->weight.grad().defined());
  net->zero_grad();
  net->conv->weight.set_requires_grad(true);
  model(input_a()).sin().sum().backward();
  plain->forward(input_a()).sin().sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE("frozen module gives outputs without history", "[dp]") {
  Pair pair;
  for (auto& parameter : pair.net->parameters()) {
    parameter.set_requires_grad(false);
  }
  CHECK_FALSE(pair.model(input_a()).requires_grad());
}
