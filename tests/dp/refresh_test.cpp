#include <sstream>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;
using tandem::RefreshPolicy;

namespace {

/// A parameter, and a buffer that every forward of the base counts up.
struct CountingImpl : torch::nn::Cloneable<CountingImpl> {
  CountingImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}));
    calls = register_buffer("calls", torch::zeros({1}));
  }
  at::Tensor forward(const at::Tensor& input) {
    auto output =
        torch::stack({input * weight, torch::zeros_like(input) + calls}, 1);
    const torch::NoGradGuard no_grad;
    calls += 1;
    return output;
  }
  at::Tensor weight;
  at::Tensor calls;
};

void set_to(const at::Tensor& tensor, double value) {
  const torch::NoGradGuard no_grad;
  tensor.fill_(value);
}

} // namespace

TEST_CASE("every change of a parameter reaches the next forward", "[dp]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 1, 1);
  tandem::DataParallel model(net, on_devices(2));
  const auto check_follows = [&](const char* change, double value) {
    INFO(change);
    const auto output = model(torch::ones({2, 1}, at::kDouble));
    CHECK(output[1][0].item<double>() == value);
  };
  const auto weight = net->weight;
  set_to(net->bias, 0);
  set_to(weight, 2);
  check_follows("in place", 2);
  weight.data().fill_(3);
  check_follows("through data()", 3);
  if (device_type() != at::kCUDA) {
    weight.data_ptr<double>()[0] = 4;
    check_follows("through the pointer", 4);
  }
  weight.set_data(torch::full_like(weight, 5));
  check_follows("set_data", 5);
  {
    const c10::InferenceMode inference;
    weight.fill_(6);
  }
  check_follows("in inference mode", 6);
  torch::optim::SGD optimizer({weight}, 1.0);
  weight.mutable_grad() = torch::full_like(weight, -1);
  optimizer.step();
  check_follows("SGD step", 7);
}

TEST_CASE("manual policy keeps parameters until refresh()", "[dp]") {
  const auto net = make_base<CountingImpl>(1);
  tandem::DataParallel model(
      net,
      on_devices(2).refresh_policy(RefreshPolicy::kManual));
  const auto input = torch::ones({2}, at::kDouble);
  set_to(net->weight, 5);
  set_to(net->calls, 7);
  auto output = model(input);
  CHECK(output[0][0].item<double>() == 5);
  CHECK(output[1][0].item<double>() == 1);
  // Buffers are refreshed under either policy.
  CHECK(output[1][1].item<double>() == 7);
  model->refresh();
  CHECK(model(input)[1][0].item<double>() == 5);
  CHECK(contains(model->describe(), "refresh()"));
}

TEST_CASE("buffers are replica 0's at every forward", "[dp]") {
  const auto net = make_base<CountingImpl>(1);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = torch::ones({3}, at::kDouble);
  for (int call = 0; call < 3; ++call) {
    const auto calls = model(input).select(1, 1);
    CHECK(calls.eq(call).all().item<bool>());
  }
  CHECK(net->calls.item<double>() == 3);
}

TEST_CASE("replicas follow a change of dtype", "[dp]") {
  for (const auto policy : {RefreshPolicy::kAlways, RefreshPolicy::kManual}) {
    const auto net = make_base<ConvLinearImpl>(1);
    const auto plain = make_net<ConvLinearImpl>(1);
    tandem::DataParallel model(net, on_devices(3).refresh_policy(policy));
    const auto input = ConvLinearImpl::input(5, 2);
    model(input).sum().backward();
    net->zero_grad();
    for (const auto dtype : {at::kFloat, at::kDouble}) {
      model->to(dtype);
      plain->to(dtype);
      CHECK(model->replica(0)->conv->weight.scalar_type() == dtype);
      const auto output = model(input.to(dtype));
      CHECK(output.scalar_type() == dtype);
      CHECK(model->replica(2)->conv->weight.scalar_type() == dtype);
      net->zero_grad();
      output.pow(2).sum().backward();
      CHECK(net->conv->weight.grad().scalar_type() == dtype);
    }
    plain->forward(input).pow(2).sum().backward();
    CHECK(are_close(grads_of(*net), grads_of(*plain)));
  }
}

TEST_CASE("replicas follow a change of memory format", "[dp][DP-46]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  auto weight = net->conv->weight;
  weight.set_data(weight.contiguous(at::MemoryFormat::ChannelsLast));
  const auto input = ConvLinearImpl::input(4, 2);
  CHECK(is_close(model(input), net->forward(input.to(device()))));
  CHECK(is_equal(model->replica(1)->conv->weight, weight));
}

TEST_CASE("two training forwards with BatchNorm serve one backward", "[dp]") {
  const auto net = make_base<torch::nn::BatchNorm1dImpl>(1, 3);
  tandem::DataParallel model(net, on_devices(2));
  const auto first = model(normal({6, 3}, 1)).pow(3).sum();
  const auto second = model(normal({6, 3}, 2)).pow(3).sum();
  CHECK_NOTHROW((first + second).backward());
  CHECK(net->weight.grad().defined());
}

TEST_CASE("archive has the bare module's names", "[dp][DP-47]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  CHECK(model->named_parameters().keys() == net->named_parameters().keys());
  std::stringstream from_wrapper;
  std::stringstream from_module;
  torch::save(model, from_wrapper);
  torch::save(net, from_module);

  auto plain = make_net<ConvLinearImpl>(2);
  torch::load(plain, from_wrapper);
  CHECK(are_close(plain->parameters(), net->parameters()));

  tandem::DataParallel other(make_base<ConvLinearImpl>(3), on_devices(2));
  torch::load(other, from_module);
  CHECK(are_close(other->parameters(), net->parameters()));
  const auto input = ConvLinearImpl::input(5, 4);
  CHECK(is_close(other(input), net->forward(input.to(device()))));
}

TEST_CASE("counters tell forwards, copies and bytes", "[dp]") {
  const auto net = make_base<torch::nn::LinearImpl>(1, 64, 1);
  tandem::DataParallel model(net, on_devices(2));
  const auto before = model->counters();
  CHECK(before.forwards == 0);
  const auto input = normal({6, 64}, 2);
  model(input);
  const auto after = model->counters();
  CHECK(after.forwards == 1);
  CHECK(after.collectives == 0);
  // To replica 1: weight and bias, and three rows; from it: three outputs.
  CHECK(after.copies - before.copies == 3);
  CHECK(after.bytes_moved - before.bytes_moved == 8 * (65 + 3 * 64 + 3));
}
