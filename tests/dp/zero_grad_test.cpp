// Gradients that the wrapped module's own forward zeroes.
#include "nets.h"
#include "tandem_catch.h"
#include "warnings.h"

using namespace tandem::dp_test;

namespace {

constexpr auto kWarning = "its gradient vanished during forward";

/// Zeroes its gradients at each forward.
struct ForgetfulImpl : torch::nn::Cloneable<ForgetfulImpl> {
  explicit ForgetfulImpl(bool to_none = true) : set_to_none(to_none) {
    reset();
  }
  void reset() override {
    weight = register_parameter("weight", torch::ones({1}, at::kDouble));
    other = register_parameter("other", torch::ones({1}, at::kDouble));
  }
  at::Tensor forward(const at::Tensor& input) {
    zero_grad(set_to_none);
    TORCH_CHECK_VALUE(!input.isnan().any().item<bool>(), "expected numbers");
    return input * weight;
  }
  bool set_to_none;
  at::Tensor weight;
  at::Tensor other;
};

} // namespace

TEST_CASE(
    "gradients vanished in forward come back, with one warning",
    "[dp][DP-54]") {
  tandem::test::expect_warning(kWarning);
  const auto net = make_base<ForgetfulImpl>(1);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = torch::ones({4, 1}, at::kDouble);
  for (int step = 1; step <= 3; ++step) {
    model(input).sum().backward();
    CHECK(net->weight.grad().item<double>() == 4 * step);
  }
  CHECK_FALSE(net->other.grad().defined());
  CHECK(tandem::test::count_warnings(kWarning) == 1);
}

TEST_CASE("gradients come back also when forward throws", "[dp][DP-54]") {
  tandem::test::expect_warning(kWarning);
  const auto net = make_base<ForgetfulImpl>(1);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = torch::ones({6, 1}, at::kDouble);
  model(input).sum().backward();
  CHECK_THROWS(model(input * NAN));
  CHECK(net->weight.grad().item<double>() == 6);
}

TEST_CASE("a single chunk zeroes as the bare module does", "[dp][DP-54]") {
  for (const size_t count : {1, 2}) {
    const auto net = make_base<ForgetfulImpl>(1);
    tandem::DataParallel model(net, on_devices(count));
    const auto row = torch::ones({1, 1}, at::kDouble);
    model(row).sum().backward();
    model(row).sum().backward();
    CHECK(net->weight.grad().item<double>() == 1);
  }
}

TEST_CASE("zeroing in place in forward zeroes the gradients", "[dp][DP-54]") {
  const auto net = make_base<ForgetfulImpl>(1, /*to_none=*/false);
  tandem::DataParallel model(net, on_devices(2));
  const auto input = torch::ones({4, 1}, at::kDouble);
  model(input).sum().backward();
  model(input).sum().backward();
  CHECK(net->weight.grad().item<double>() == 4);
}
