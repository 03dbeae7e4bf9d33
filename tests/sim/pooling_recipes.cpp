#include "module_recipes.h"

namespace tandem::sim_test {

namespace {

namespace nn = torch::nn;

at::Tensor rows() {
  return normal({2, 3, 9}, 1);
}

at::Tensor planes() {
  return normal({2, 3, 8, 9}, 2);
}

at::Tensor cubes() {
  return normal({2, 2, 6, 5, 7}, 3);
}

/// Pools with indices, then undoes it.
template <typename Holder, typename Pool>
Recipe unpool(const std::string& name, const at::Tensor& data, Pool pool) {
  return recipe(
      name,
      [] { return Holder(2); },
      {data},
      [pool](auto& module, const Tensors& inputs) {
        const auto [pooled, indices] = pool(inputs.at(0));
        return module.forward(pooled, indices);
      });
}

std::vector<Recipe> unpool_recipes() {
  return {
      unpool<nn::MaxUnpool1d>(
          "MaxUnpool1d",
          normal({2, 3, 8}, 4),
          [](const at::Tensor& input) {
            return torch::max_pool1d_with_indices(input, 2);
          }),
      unpool<nn::MaxUnpool2d>(
          "MaxUnpool2d",
          normal({2, 3, 8, 6}, 5),
          [](const at::Tensor& input) {
            return torch::max_pool2d_with_indices(input, 2);
          }),
      unpool<nn::MaxUnpool3d>(
          "MaxUnpool3d",
          normal({2, 2, 4, 6, 8}, 6),
          [](const at::Tensor& input) {
            return torch::max_pool3d_with_indices(input, 2);
          }),
  };
}

} // namespace

std::vector<Recipe> pooling_recipes() {
  std::vector<Recipe> all{
      unary<nn::AvgPool1d>("AvgPool1d", rows(), 2),
      unary<nn::AvgPool2d>("AvgPool2d", planes(), 2),
      unary<nn::AvgPool3d>("AvgPool3d", cubes(), 2),
      unary<nn::MaxPool1d>("MaxPool1d", rows(), 2),
      unary<nn::MaxPool2d>("MaxPool2d", planes(), 2),
      unary<nn::MaxPool3d>("MaxPool3d", cubes(), 2),
      unary<nn::AdaptiveAvgPool1d>("AdaptiveAvgPool1d", rows(), 4),
      unary<nn::AdaptiveAvgPool2d>("AdaptiveAvgPool2d", planes(), 4),
      unary<nn::AdaptiveAvgPool3d>("AdaptiveAvgPool3d", cubes(), 3),
      unary<nn::AdaptiveMaxPool1d>("AdaptiveMaxPool1d", rows(), 4),
      unary<nn::AdaptiveMaxPool2d>("AdaptiveMaxPool2d", planes(), 4),
      unary<nn::AdaptiveMaxPool3d>("AdaptiveMaxPool3d", cubes(), 3),
      unary<nn::FractionalMaxPool2d>(
          "FractionalMaxPool2d",
          planes(),
          nn::FractionalMaxPool2dOptions(2).output_size(4)),
      unary<nn::FractionalMaxPool3d>(
          "FractionalMaxPool3d",
          cubes(),
          nn::FractionalMaxPool3dOptions(2).output_size(3)),
      unary<nn::LPPool1d>("LPPool1d", rows(), nn::LPPool1dOptions(2, 3)),
      unary<nn::LPPool2d>("LPPool2d", planes(), nn::LPPool2dOptions(2, 3)),
      unary<nn::LPPool3d>("LPPool3d", cubes(), nn::LPPool3dOptions(2, 3)),
  };
  for (auto& each : unpool_recipes()) {
    all.push_back(std::move(each));
  }
  return all;
}

} // namespace tandem::sim_test
