// Gradients through replicas against differences of the outputs.
#include "nets.h"
#include "tandem_catch.h"

using namespace tandem::dp_test;

namespace {

/// x·b1 + b2, where the buffer b1 requires grad.
struct BufferGradImpl : torch::nn::Cloneable<BufferGradImpl> {
  BufferGradImpl() {
    reset();
  }
  void reset() override {
    b1 = register_buffer("b1", normal({3}, 1));
    b1.requires_grad_();
    b2 = register_buffer("b2", normal({3}, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    return input * b1 + b2;
  }
  at::Tensor b1;
  at::Tensor b2;
};

/// Central differences of `loss` by each element of `variable`.
template <typename Loss>
at::Tensor numeric_gradient(const Loss& loss, const at::Tensor& variable) {
  constexpr double step = 1e-6;
  const torch::NoGradGuard no_grad;
  auto gradient = torch::zeros({variable.numel()}, at::kDouble);
  const auto elements = variable.view({-1});
  for (int64_t index = 0; index < variable.numel(); ++index) {
    elements[index] += step;
    const auto above = loss().template item<double>();
    elements[index] -= 2 * step;
    const auto below = loss().template item<double>();
    elements[index] += step;
    gradient[index] = (above - below) / (2 * step);
  }
  return gradient.view(variable.sizes());
}

constexpr double kNumericTolerance = 1e-5;

} // namespace

TEST_CASE("buffer that requires grad passes gradcheck", "[dp][DP-24]") {
  const size_t count = GENERATE(2, 4);
  const auto net = on_first(std::make_shared<BufferGradImpl>());
  tandem::DataParallel model(net, on_devices(count));
  const auto input = normal({5, 3}, 3).requires_grad_();
  const auto loss = [&] { return model(input).sin().sum(); };
  loss().backward();
  CHECK_FALSE(net->b2.grad().defined());
  for (const auto& variable : {net->b1, input}) {
    CHECK(is_close(
        variable.grad(),
        numeric_gradient(loss, variable),
        kNumericTolerance));
  }
}

TEST_CASE("convolution's parameters pass gradcheck", "[dp][DP-24]") {
  const auto net = make_base<ConvLinearImpl>(1);
  tandem::DataParallel model(net, on_devices(3));
  const auto input = ConvLinearImpl::input(5, 2);
  const auto loss = [&] { return model(input).sin().sum(); };
  loss().backward();
  for (const auto& parameter : net->parameters()) {
    CHECK(is_close(
        parameter.grad(),
        numeric_gradient(loss, parameter),
        kNumericTolerance));
  }
}
