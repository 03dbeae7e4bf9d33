#include <tandem/core/batch_moments.h>

#include <algorithm>

#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "channel_math.h"

namespace tandem {

namespace {

int64_t values_per_channel(const at::Tensor& input) {
  return input.size(1) == 0 ? 0 : input.numel() / input.size(1);
}

class PackedMoments : public torch::autograd::Function<PackedMoments> {
 public:
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& input) {
    const int64_t count = values_per_channel(input);
    const auto dtype = at::toOpMathType(input.scalar_type());
    auto packed =
        at::zeros({1 + 2 * input.size(1)}, input.options().dtype(dtype));
    if (count > 0) {
      const auto [variance, mean] = at::var_mean(
          input.to(dtype),
          detail::dims_but_channels(input),
          /*unbiased=*/false);
      const BatchMoments moments{packed};
      moments.count().fill_(count);
      moments.mean().copy_(mean);
      moments.m2().copy_(variance).mul_(count);
    }
    context->save_for_backward({input, packed});
    return packed;
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const BatchMoments moments{saved[1]};
    const BatchMoments grad{grads.front()};
    const auto count = std::max<int64_t>(values_per_channel(input), 1);
    const auto centered = input - detail::per_channel(moments.mean(), input);
    return {(centered * detail::per_channel(grad.m2() * 2, input) +
             detail::per_channel(grad.mean() / count, input))
                .to(input.scalar_type())};
  }
};

} // namespace

BatchMoments moments_of(const at::Tensor& input) {
  return {PackedMoments::apply(input)};
}

BatchMoments combine_moments(const at::Tensor& parts) {
  const int64_t num_channels = (parts.size(1) - 1) / 2;
  const auto counts = parts.narrow(1, 0, 1); // [P, 1]
  const auto means = parts.narrow(1, 1, num_channels); // [P, C]
  const auto m2s = parts.narrow(1, 1 + num_channels, num_channels);
  const auto count = counts.sum(0); // [1]
  const auto mean = (counts / count.clamp_min(1) * means).sum(0); // [C]
  const auto m2 = (m2s + counts * (means - mean).square()).sum(0);
  return {at::cat({count, mean, m2})};
}

} // namespace tandem
