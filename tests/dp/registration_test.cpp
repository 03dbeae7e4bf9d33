// Changes of what the wrapped module has registered.
#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

struct InnerImpl : torch::nn::Cloneable<InnerImpl> {
  InnerImpl() {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}, at::kDouble));
    count = register_buffer("count", torch::zeros({1}, at::kDouble));
    child = register_module("child", torch::nn::Linear(1, 1));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * weight;
  }
  void replace_parameter() {
    parameters_["weight"] = weight.detach().clone().requires_grad_();
  }
  void remove_parameter() {
    parameters_.erase("weight");
  }
  at::Tensor weight;
  at::Tensor count;
  torch::nn::Linear child{nullptr};
};

struct OuterImpl : torch::nn::Cloneable<OuterImpl> {
  OuterImpl() {
    reset();
  }
  void reset() override {
    inner = register_module("inner", std::make_shared<InnerImpl>());
  }
  at::Tensor forward(const at::Tensor& input) {
    return inner->forward(input);
  }
  std::shared_ptr<InnerImpl> inner;
};

/// Messages of the forwards before and after `change`.
std::string message_after(const std::function<void(InnerImpl&)>& change) {
  const auto net = make_base<OuterImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = normal({4, 1}, 1);
  CHECK(is_close(model(input), input.to(device())));
  change(*net->inner);
  CHECK_THROWS_AS(model(input), tandem::ConfigError);
  CHECK_THROWS_AS(model->refresh(), tandem::ConfigError);
  return message_thrown_by([&] { model(input); });
}

void check_names(
    const std::string& message,
    const std::string& subject,
    const std::string& expected,
    const std::string& actual) {
  INFO(message);
  CHECK(contains(message, subject));
  CHECK(contains(message, "expected " + expected + ","));
  CHECK(contains(message, "got " + actual + "."));
}

} // namespace

TEST_CASE("a parameter registered after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) {
        module.register_parameter("scale", torch::ones({1}));
      }),
      "parameter 'inner.scale'",
      "none",
      "one");
}

TEST_CASE("a parameter replaced after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) { module.replace_parameter(); }),
      "parameter 'inner.weight'",
      "the same one",
      "another");
}

TEST_CASE("a parameter removed after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) { module.remove_parameter(); }),
      "parameter 'inner.weight'",
      "one",
      "none");
}

TEST_CASE("a buffer registered after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) {
        module.register_buffer("mean", torch::ones({1}));
      }),
      "buffer 'inner.mean'",
      "none",
      "one");
}

TEST_CASE("a module added after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) {
        module.register_module("head", torch::nn::Linear(1, 1));
      }),
      "module 'inner.head'",
      "none",
      "one");
}

TEST_CASE("a module replaced after wrapping is refused", "[dp]") {
  check_names(
      message_after([](InnerImpl& module) {
        module.child = module.replace_module("child", torch::nn::Linear(1, 1));
      }),
      "module 'inner.child'",
      "the same one",
      "another");
}

TEST_CASE("a module removed after wrapping is refused", "[dp]") {
  check_names(
      message_after(
          [](InnerImpl& module) { module.unregister_module("child"); }),
      "module 'inner.child'",
      "one",
      "none");
}

TEST_CASE("a module taken out and put back is no change", "[dp]") {
  const auto net = make_base<OuterImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto child = net->inner->child;
  net->inner->unregister_module("child");
  net->inner->register_module("child", child);
  CHECK_NOTHROW(model(normal({4, 1}, 1)));
}
