#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// Two layers, the second of which is never called.
struct HalfUsedImpl : torch::nn::Cloneable<HalfUsedImpl> {
  HalfUsedImpl() {
    reset();
  }
  void reset() override {
    used = register_module("used", torch::nn::Linear(3, 2));
    unused = register_module("unused", torch::nn::Linear(3, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    return used(input);
  }
  torch::nn::Linear used{nullptr};
  torch::nn::Linear unused{nullptr};
};

/// A second layer that only chunks of two rows use.
struct SometimesImpl : torch::nn::Cloneable<SometimesImpl> {
  SometimesImpl() {
    reset();
  }
  void reset() override {
    always = register_parameter("always", torch::ones({2}));
    sometimes = register_parameter("sometimes", torch::ones({2}));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input.size(0) == 2 ? input * always * sometimes : input * always;
  }
  at::Tensor always;
  at::Tensor sometimes;
};

/// y = x·a + x·b, where b is a.
struct TiedPairImpl : torch::nn::Cloneable<TiedPairImpl> {
  TiedPairImpl() {
    reset();
  }
  void reset() override {
    a = register_parameter("a", torch::ones({3}));
    b = register_parameter("b", a);
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * a + input * b;
  }
  at::Tensor a;
  at::Tensor b;
};

/// Weights tied by the user, after reset(): a clone has two of them.
struct TiedLateImpl : torch::nn::Cloneable<TiedLateImpl> {
  TiedLateImpl() {
    reset();
  }
  void reset() override {
    a = register_parameter("a", torch::ones({3}));
    b = register_parameter("b", torch::ones({3}));
  }
  void tie() {
    b = a;
    parameters_["b"] = a;
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * a + input * b;
  }
  at::Tensor a;
  at::Tensor b;
};

template <typename M, typename Step>
void train_beside_plain(
    tandem::DataParallel<M>& model,
    const std::shared_ptr<M>& plain,
    const Step& loss_of) {
  const auto options = torch::optim::SGDOptions(0.1).momentum(0.9);
  torch::optim::SGD optimizer(model->parameters(), options);
  torch::optim::SGD plain_optimizer(plain->parameters(), options);
  for (uint64_t step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    plain_optimizer.zero_grad();
    loss_of([&](const auto& x) { return model(x); }, step).backward();
    loss_of([&](const auto& x) { return plain->forward(x); }, step).backward();
    optimizer.step();
    plain_optimizer.step();
    INFO("step " << step);
    CHECK(are_close(model->parameters(), plain->parameters()));
  }
}

} // namespace

TEST_CASE("three SGD steps end as on one device", "[dp][DP-20]") {
  for (const size_t devices : {1, 2, 3, 4}) {
    for (const int64_t bucket_cap_bytes : {1, 100, 25 << 20}) {
      for (const int64_t rows : {16, 17}) {
        INFO(devices << " devices, cap " << bucket_cap_bytes);
        tandem::DataParallel model(
            make_base<ConvLinearImpl>(1),
            on_devices(devices).bucket_cap_bytes(bucket_cap_bytes));
        train_beside_plain(
            model,
            make_net<ConvLinearImpl>(1),
            [&](auto forward, auto step) {
              return -forward(ConvLinearImpl::input(rows, step)).mean();
            });
      }
    }
  }
}

TEST_CASE("gradients land in the wrapped module and add up", "[dp][DP-21]") {
  const size_t count = GENERATE(2, 4);
  const auto net = make_base<torch::nn::LinearImpl>(1, 10, 5);
  const auto plain = make_net<torch::nn::LinearImpl>(1, 10, 5);
  tandem::DataParallel model(net, on_devices(count));
  const auto input = normal({20, 10}, 2);
  plain->forward(input).sum().backward();
  model(input).sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
  model(input).sum().backward();
  plain->forward(input).sum().backward();
  CHECK(are_close(grads_of(*net), grads_of(*plain)));
}

TEST_CASE(
    "weights tied in reset() receive their gradient once",
    "[dp][DP-39]") {
  const auto net = make_base<TiedPairImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({5, 3}, 2);
  const auto output = model(input);
  CHECK(is_close(output, 2 * input));
  output.sum().backward();
  CHECK(is_close(net->a.grad(), 2 * input.sum(0)));
  CHECK(model->replica(1)->a.is_same(model->replica(1)->b));
}

TEST_CASE(
    "weights tied after reset() receive their gradient once",
    "[dp][DP-39]") {
  const auto net = make_base<TiedLateImpl>(1);
  net->tie();
  tandem::DataParallel model(net, on_devices(3));
  const auto input = normal({7, 3}, 2);
  torch::optim::SGD optimizer({net->a}, 1.0);
  model(input).sum().backward();
  CHECK(is_close(net->a.grad(), 2 * input.sum(0)));
  optimizer.step();
  CHECK(is_close(model(input), 2 * input * net->a.cpu()));
}

TEST_CASE("parameter that no replica uses keeps no gradient", "[dp][DP-43]") {
  const auto net = make_base<HalfUsedImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({4, 3}, 2);
  model(input).sum().backward();
  CHECK_FALSE(net->unused->weight.grad().defined());
  CHECK_FALSE(net->unused->bias.grad().defined());
  CHECK(is_close(net->used->weight.grad()[1], input.sum(0)));
}

TEST_CASE("parameter that one replica uses has its gradient", "[dp][DP-43]") {
  for (const int64_t rows : {5, 3}) {
    // 5 rows: the second chunk has two; 3 rows: the first one has.
    const auto net = make_base<SometimesImpl>(1);
    tandem::DataParallel model(net, on_devices(2));
    const auto input = normal({rows, 2}, 2);
    model(input).sum().backward();
    const auto used = rows == 5 ? input.narrow(0, 3, 2) : input.narrow(0, 0, 2);
    CHECK(is_close(net->sometimes.grad(), used.sum(0)));
    CHECK(is_close(net->always.grad(), input.sum(0)));
  }
}

TEST_CASE("mean_loss over uneven chunks is the mean of all rows", "[dp]") {
  for (const size_t devices : {2, 3, 4, 5}) {
    for (const int64_t rows : {1, 5, 7, 11}) {
      const auto net = make_base<ConvLinearImpl>(1);
      const auto plain = make_net<ConvLinearImpl>(1);
      tandem::DataParallel model(net, on_devices(devices));
      const auto input = ConvLinearImpl::input(rows, 2);
      const auto target = normal({rows, 2}, 3);
      const auto per_row = [](const at::Tensor& y, const at::Tensor& t) {
        return (y - t).pow(2).mean(1);
      };
      const auto loss = model->mean_loss(per_row, target, input);
      const auto expected = per_row(plain->forward(input), target).mean();
      CHECK(is_close(loss, expected));
      loss.backward();
      expected.backward();
      CHECK(are_close(grads_of(*net), grads_of(*plain)));
    }
  }
}

TEST_CASE("mean_loss along dim 1 is the mean of all rows", "[dp][DP-12]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 2, 2);
  tandem::DataParallel model(net, on_devices(2).dim(1));
  const auto input = normal({3, 5, 2}, 2); // [T, B, F]
  const auto sum = [](const at::Tensor& y, const at::Tensor& t) {
    return (y - t).pow(2).sum();
  };
  const auto loss = model->mean_loss(sum, torch::zeros_like(input), input);
  CHECK(is_close(loss, net->forward(input.to(device())).pow(2).sum() / 5));
}
