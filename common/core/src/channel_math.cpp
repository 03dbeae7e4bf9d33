#include "channel_math.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tandem::detail {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class ScaleAboutCenter : public torch::autograd::Function<ScaleAboutCenter> {
 public:
  static at::Tensor forward(
      AutogradContext* context,
      const at::Tensor& input,
      const at::Tensor& center,
      const at::Tensor& scale,
      const at::Tensor& shift) {
    context->save_for_backward({input, center, scale});
    return (input - per_channel(center, input))
        .mul_(per_channel(scale, input))
        .add_(per_channel(shift, input))
        .to(input.scalar_type());
  }

  static variable_list backward(
      AutogradContext* context,
      const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto& input = saved[0];
    const auto& center = saved[1];
    const auto& scale = saved[2];
    const auto& grad = grads.front();
    const auto dims = dims_but_channels(input);
    const auto of_shift = grad.sum(dims, false, scale.scalar_type());
    const auto of_scale = (grad * (input - per_channel(center, input)))
                              .sum(dims, false, scale.scalar_type());
    return {
        (grad * per_channel(scale, input)).to(input.scalar_type()),
        of_shift * -scale,
        of_scale,
        of_shift};
  }
};

} // namespace

std::vector<int64_t> dims_but_channels(const at::Tensor& tensor) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < tensor.dim(); ++dim) {
    dims.push_back(dim);
  }
  return dims;
}

at::Tensor per_channel(const at::Tensor& values, const at::Tensor& like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[1] = values.numel();
  return values.view(shape);
}

at::Tensor scale_about_center(
    const at::Tensor& input,
    const at::Tensor& center,
    const at::Tensor& scale,
    const at::Tensor& shift) {
  return ScaleAboutCenter::apply(input, center, scale, shift);
}

} // namespace tandem::detail
