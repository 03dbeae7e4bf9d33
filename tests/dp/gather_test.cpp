#include <thread>

#include <tandem/core/errors.h>

#include "nets.h"
#include "tandem_catch.h"
#include "warnings.h"

using namespace tandem::dp_test;

TEST_CASE(
    "gradient of the gathered output splits by real sizes",
    "[dp][DP-14]") {
  const auto twice = [](const at::Tensor& input) { return input * 2; };
  const size_t count = GENERATE(2, 4);
  auto model = wrap_function(twice, on_devices(count));
  const auto input = torch::ones({5, 2}, torch::kDouble).requires_grad_();
  const auto gradient = torch::arange(10, torch::kDouble).view({5, 2});
  model(input).backward(gradient.to(device()));
  CHECK(is_equal(input.grad(), 2 * gradient));
}

TEST_CASE("0-dim outputs become a vector, with one warning", "[dp]") {
  const auto mean = [](const at::Tensor& input) { return input.mean(); };
  auto model = wrap_function(mean, on_devices(2));
  const auto input = torch::arange(5, torch::kDouble).requires_grad_();
  tandem::test::expect_warning("as a vector");
  const auto output = model(input);
  model(input);
  CHECK(is_equal(output, torch::tensor({1.0, 3.5}, torch::kDouble)));
  CHECK(tandem::test::count_warnings("as a vector") == 1);
  // Each wrapper says so once.
  wrap_function(mean, on_devices(2))(input);
  CHECK(tandem::test::count_warnings("as a vector") == 2);
  output.sum().backward();
  const double third = 1.0 / 3;
  CHECK(input.grad().equal(
      torch::tensor({third, third, third, 0.5, 0.5}, torch::kDouble)));
}

TEST_CASE("module without parameters runs", "[dp][DP-33]") {
  const auto ones = [](const at::Tensor& input) {
    return torch::ones({3}, input.options());
  };
  const int64_t count = GENERATE(2, 4);
  auto model = wrap_function(ones, on_devices(count));
  CHECK(model->parameters().empty());
  const auto output = model(torch::zeros({4}));
  CHECK(is_equal(output, torch::ones({3 * count})));
  CHECK(output.device() == device());
}

TEST_CASE("call without a tensor to cut runs replica 0 alone", "[dp][DP-33]") {
  const auto caller = std::this_thread::get_id();
  const auto ones = [caller](int count) {
    TORCH_CHECK(std::this_thread::get_id() == caller);
    return torch::ones({count});
  };
  const auto none = [] { return torch::ones({2}); };
  CHECK(is_equal(wrap_function(ones, on_devices(2))(3), torch::ones({3})));
  CHECK(is_equal(wrap_function(none, on_devices(3))(), torch::ones({2})));
}

TEST_CASE("output device is where outputs go", "[dp][DP-11]") {
  const auto same = [](const at::Tensor& input) { return input * 1; };
  for (const size_t count : {1, 2, 4}) {
    auto options = on_devices(count).output_device(at::Device(at::kMeta));
    const auto output = wrap_function(same, options)(torch::ones({4, 2}));
    CHECK(output.device().is_meta());
    CHECK(output.sizes() == at::IntArrayRef{4, 2});
  }
}

TEST_CASE("first device and output device are any that exist", "[dp][DP-11]") {
  const auto pair = devices(2);
  const std::vector<at::Device> reversed{pair[1], pair[0]};
  const auto input = normal({5, 10}, 2);
  const auto plain = make_net<torch::nn::LinearImpl>(1, 10, 5);
  const auto expected = plain->forward(input);
  expected.pow(2).sum().backward();
  for (const auto& list : {devices(1), pair, reversed, devices(4)}) {
    const std::vector<std::optional<at::Device>> wanted{
        std::nullopt,
        pair[0],
        pair[1],
        devices(3)[2],
        at::kCPU};
    for (const auto& output_device : wanted) {
      const auto net = make_net<torch::nn::LinearImpl>(1, 10, 5);
      net->to(list.front());
      auto options = on_devices(2).devices(list);
      if (output_device) {
        options.output_device(output_device);
      }
      tandem::DataParallel model(net, options);
      const auto output = model(input);
      INFO(list.front() << " first, to " << output.device());
      CHECK(output.device() == output_device.value_or(list.front()));
      CHECK(is_close(output, expected));
      output.pow(2).sum().backward();
      CHECK(are_close(grads_of(*net), grads_of(*plain)));
      CHECK(net->weight.grad().device() == list.front());
    }
  }
}

TEST_CASE("forward without a result runs on every replica", "[dp]") {
  std::atomic<int64_t> rows{0};
  const auto count = [&rows](const at::Tensor& input) {
    rows += input.size(0);
  };
  auto model = wrap_function(count, on_devices(3));
  model(torch::zeros({8, 2}));
  CHECK(rows == 8);
}

TEST_CASE("output without the batch dimension is refused", "[dp]") {
  const auto flat = [](const at::Tensor& input) { return input.flatten(); };
  auto model = wrap_function(flat, on_devices(2).dim(1));
  REQUIRE_THROWS_AS(model(torch::ones({2, 4})), tandem::ShapeError);
  CHECK(contains(
      message_thrown_by([&] {
        model(torch::ones({2, 4}));
      }),
      "at least 2 dimensions"));
}
