// What a wrapper does after it was made, beside training.
#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::ConfigError;

TEST_CASE("moving the wrapper to another device is refused", "[dp][DP-34]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  CHECK_THROWS_AS(model->to(at::kMeta), ConfigError);
  CHECK_THROWS_AS(model->to(at::kMeta, at::kFloat), ConfigError);
  CHECK(net->linear->weight.scalar_type() == at::kDouble);
  CHECK_NOTHROW(model->to(device()));
}

TEST_CASE(
    "tensor that left the first device is refused by name",
    "[dp][DP-34][only-sim]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = ConvLinearImpl::input(4, 1);
  model(input);
  net->linear->to(devices(2)[1]);
  CHECK_THROWS_AS(model(input), ConfigError);
  CHECK(contains(
      message_thrown_by([&] { model(input); }),
      "parameter 'linear.weight'"));
  net->linear->to(device());
  CHECK(is_close(model(input), net->forward(input.to(device()))));
}

TEST_CASE("several wrappers serve one loss", "[dp]") {
  const size_t count = GENERATE(2, 4);
  const auto first = make_base<ConvLinearImpl>(1);
  const auto second = make_base<torch::nn::LinearImpl>(2, 2, 3);
  const auto plain_first = make_net<ConvLinearImpl>(1);
  const auto plain_second = make_net<torch::nn::LinearImpl>(2, 2, 3);
  tandem::DataParallel model(first, on_devices(count));
  tandem::DataParallel head(second, on_devices(count));
  tandem::DataParallel again(first, on_devices(2));
  const auto input = ConvLinearImpl::input(6, 3);
  (head(model(input)).pow(2).sum() + again(input).exp().sum()).backward();
  const auto hidden = plain_first->forward(input);
  (plain_second->forward(hidden).pow(2).sum() + hidden.exp().sum()).backward();
  CHECK(are_close(grads_of(*first), grads_of(*plain_first)));
  CHECK(are_close(grads_of(*second), grads_of(*plain_second)));
}

TEST_CASE("description names devices, sizes, buckets and policy", "[dp]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2).bucket_cap_bytes(1));
  const auto text = model->describe();
  CHECK(contains(
      text,
      c10::str("2 replicas on ", devices(2)[0], ", ", devices(2)[1])));
  CHECK(contains(text, "4 parameters"));
  CHECK(contains(text, "4 bucket(s)"));
  CHECK(contains(text, "every forward"));
  CHECK(contains(text, "one thread") == device().is_cpu());
  CHECK(contains(
      tandem::DataParallel(net, on_devices(1))->describe(),
      "no replicas"));
  CHECK(model->strategy() == "dp");
  CHECK(model->device() == device());
}

TEST_CASE("nested wrapper trains like the bare module", "[dp][DP-37]") {
  struct Outer : torch::nn::Module {
    Outer(
        std::shared_ptr<torch::nn::LinearImpl> linear,
        const tandem::DataParallelOptions& options)
        : inner(std::move(linear), options) {
      register_module("inner", inner);
    }
    at::Tensor forward(const at::Tensor& input) {
      return inner(input).tanh();
    }
    tandem::DataParallel<torch::nn::LinearImpl> inner;
  };
  const auto plain = make_net<torch::nn::LinearImpl>(1, 3, 2);
  const auto linear = make_base<torch::nn::LinearImpl>(1, 3, 2);
  const auto outer = std::make_shared<Outer>(linear, on_devices(2));
  const auto make_outer = [](at::Device first) {
    const auto other = make_net<torch::nn::LinearImpl>(2, 3, 2);
    other->to(first);
    return std::make_shared<Outer>(
        other,
        on_devices(2).devices({first, device()}));
  };
  tandem::DataParallel model(outer, on_devices(2).replica_factory(make_outer));
  const auto input = normal({7, 3}, 3);
  torch::optim::SGD optimizer(linear->parameters(), 0.1);
  torch::optim::SGD plain_optimizer(plain->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    plain_optimizer.zero_grad();
    const auto output = model(input);
    const auto expected = plain->forward(input).tanh();
    CHECK(is_close(output, expected));
    output.sum().backward();
    expected.sum().backward();
    CHECK(are_close(grads_of(*linear), grads_of(*plain)));
    optimizer.step();
    plain_optimizer.step();
  }
}
