#pragma once

#include <map>

#include "support.h"

namespace tandem::sim_test {

/// One recipe or more for every module of torch::nn, named after it.
std::vector<Recipe> module_recipes();

std::vector<Recipe> shape_recipes();
std::vector<Recipe> pooling_recipes();
std::vector<Recipe> activation_recipes();
std::vector<Recipe> parametric_recipes();
std::vector<Recipe> loss_recipes();

/// Modules that are left out, and why.
std::map<std::string, std::string> modules_left_out();

/// A module made from `options` and called with the first tensor of the data.
template <typename Holder, typename... Options>
Recipe unary(
    const std::string& name,
    const at::Tensor& data,
    const Options&... options) {
  return recipe(name, [=] { return Holder(options...); }, {data});
}

/// Likewise, with the first two tensors; the second is a target or an index
/// and gets no gradient.
template <typename Holder, typename... Options>
Recipe binary(
    const std::string& name,
    const Tensors& data,
    const Options&... options) {
  return recipe(
      name,
      [=] { return Holder(options...); },
      data,
      [](auto& module, const Tensors& inputs) {
        return module.forward(inputs.at(0), inputs.at(1).detach());
      });
}

} // namespace tandem::sim_test
