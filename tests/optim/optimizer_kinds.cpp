#include "optimizer_kinds.h"

#include <tandem/core/flat_buffer.h>

#include "tensors.h"

namespace tandem::test {

using torch::optim::OptimizerParamGroup;

std::vector<OptimizerKind> optimizer_kinds() {
  namespace to = torch::optim;
  return {
      {"SGD",
       optimizer_factory<to::SGD>(
           to::SGDOptions(0.05).momentum(0.5).weight_decay(0.01))},
      {"Adam",
       optimizer_factory<to::Adam>(to::AdamOptions(0.05).amsgrad(true))},
      {"AdamW", optimizer_factory<to::AdamW>(to::AdamWOptions(0.05))},
      {"Adagrad", optimizer_factory<to::Adagrad>(to::AdagradOptions(0.05))},
      {"RMSprop",
       optimizer_factory<to::RMSprop>(
           to::RMSpropOptions(0.05).momentum(0.5).centered(true))}};
}

std::vector<OptimizerParamGroup> one_group(const torch::nn::Module& module) {
  return {OptimizerParamGroup(module.parameters())};
}

ThreeLayersImpl::ThreeLayersImpl()
    : first(register_module("first", torch::nn::Linear(2, 5))),
      second(register_module("second", torch::nn::Linear(5, 7))),
      third(register_module("third", torch::nn::Linear(7, 3))) {
  to(torch::kDouble);
  fill(*this, 11);
}

at::Tensor ThreeLayersImpl::forward(const at::Tensor& input) {
  return third(torch::tanh(second(torch::tanh(first(input)))));
}

at::Tensor backward(ThreeLayersImpl& net, int64_t step) {
  const auto batch = normal({6, 2}, static_cast<uint64_t>(step));
  auto loss = net.forward(batch).square().mean();
  loss.backward();
  return loss;
}

at::Tensor take_steps(
    ThreeLayersImpl& net,
    torch::optim::Optimizer& optimizer,
    int64_t first_step,
    int64_t num_steps) {
  std::vector<at::Tensor> after;
  for (int64_t step = first_step; step < first_step + num_steps; ++step) {
    optimizer.zero_grad();
    backward(net, step);
    optimizer.step();
    after.push_back(flat_values(net));
  }
  return torch::stack(after);
}

at::Tensor flat_values(const torch::nn::Module& module) {
  return flatten_copy(module.parameters());
}

at::Tensor plain_steps(const OptimizerFactory& make, int64_t num_steps) {
  ThreeLayers net;
  const auto optimizer = make(one_group(*net));
  return take_steps(*net, *optimizer, 0, num_steps);
}

} // namespace tandem::test
