#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <torch/optim/optimizer.h>

namespace tandem {

/// Makes an optimizer of the kind and defaults that a wrapper is to use inside,
/// over groups of the wrapper's choice; groups may be without parameters.
using OptimizerFactory = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<torch::optim::OptimizerParamGroup>&)>;

/// The factory of `Optimizer(groups, arguments...)`.
///
/// Example:
/// ```cpp
/// tandem::ZeroRedundancyOptimizer optimizer(
///     model->parameters(),
///     tandem::optimizer_factory<torch::optim::Adam>(
///         torch::optim::AdamOptions(1e-3)));
/// ```
template <typename Optimizer, typename... Arguments>
OptimizerFactory optimizer_factory(const Arguments&... arguments) {
  return
      [arguments...](
          const std::vector<torch::optim::OptimizerParamGroup>& param_groups) {
        return std::make_unique<Optimizer>(param_groups, arguments...);
      };
}

} // namespace tandem
