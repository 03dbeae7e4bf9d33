#include "training.h"

namespace tandem::suite {

OptimizerMaker sgd_with_momentum() {
  return [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(
        std::move(parameters),
        torch::optim::SGDOptions(0.1).momentum(0.9));
  };
}

OptimizerMaker adam() {
  return [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::Adam>(
        std::move(parameters),
        torch::optim::AdamOptions(0.01));
  };
}

OptimizerMaker adamw() {
  return [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::AdamW>(
        std::move(parameters),
        torch::optim::AdamWOptions(0.01));
  };
}

std::vector<at::Tensor> state_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> state;
  for (const auto& parameter : module.parameters()) {
    state.push_back(parameter);
    state.push_back(parameter.grad());
  }
  for (const auto& buffer : module.buffers()) {
    state.push_back(buffer);
  }
  return state;
}

} // namespace tandem::suite
