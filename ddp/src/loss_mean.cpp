#include "loss_mean.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tandem::detail {

namespace {

/// `value`, with `scale` as its derivative by `source`.
class ScaledGradient : public torch::autograd::Function<ScaledGradient> {
 public:
  static at::Tensor forward(
      torch::autograd::AutogradContext* context,
      const at::Tensor& /*source*/,
      const at::Tensor& value,
      const at::Tensor& scale) {
    context->save_for_backward({scale});
    return value.clone();
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context,
      const torch::autograd::variable_list& grads) {
    const auto scale = context->get_saved_variables().front();
    return {grads.front().mul(scale), at::Tensor(), at::Tensor()};
  }
};

} // namespace

LossMean::LossMean(const at::Tensor& loss_sum, int64_t rows)
    : loss_sum_(loss_sum) {
  const auto options =
      loss_sum.options().dtype(at::kDouble).requires_grad(false);
  sums_ = at::stack(
      {loss_sum.detach().to(at::kDouble).reshape({}),
       at::full({}, static_cast<double>(rows), options)});
}

at::Tensor LossMean::mean(int64_t world_size) const {
  const auto dtype = loss_sum_.scalar_type();
  const auto rows = sums_.select(0, 1);
  return ScaledGradient::apply(
      loss_sum_,
      sums_.select(0, 0).div(rows).to(dtype),
      at::reciprocal(rows).mul(world_size).to(dtype));
}

} // namespace tandem::detail
