#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/optim/optimizer_factory.h>

namespace tandem::test {

struct OptimizerKind {
  std::string name;
  OptimizerFactory make;
};

/// Every kind that treats its parameters one by one, with options that give it
/// state, at a rate at which three steps show.
std::vector<OptimizerKind> optimizer_kinds();

/// One group of all of the module's parameters.
std::vector<torch::optim::OptimizerParamGroup> one_group(
    const torch::nn::Module& module);

/// Three layers, in double, the same on every rank.
struct ThreeLayersImpl : torch::nn::Module {
  ThreeLayersImpl();
  at::Tensor forward(const at::Tensor& input);

  torch::nn::Linear first;
  torch::nn::Linear second;
  torch::nn::Linear third;
};
TORCH_MODULE(ThreeLayers);

/// Gradients of the loss on the batch of this step, added to those there are.
/// Returns the loss.
at::Tensor backward(ThreeLayersImpl& net, int64_t step);

/// One step after another, each on its own batch. Returns the parameters after
/// each. [steps, numel]
at::Tensor take_steps(
    ThreeLayersImpl& net,
    torch::optim::Optimizer& optimizer,
    int64_t first_step,
    int64_t num_steps);

/// All parameters in one vector, as they are now.
at::Tensor flat_values(const torch::nn::Module& module);

/// The same steps of the plain optimizer, in a world of one.
at::Tensor plain_steps(const OptimizerFactory& make, int64_t num_steps);

} // namespace tandem::test
