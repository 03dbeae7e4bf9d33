#include "support.h"

#include <ATen/CPUGeneratorImpl.h>

namespace tandem::test {

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed, at::ScalarType dtype) {
  const auto generator = at::detail::createCPUGenerator(seed);
  return torch::randn(sizes, generator, torch::kDouble).to(dtype);
}

void fill(torch::nn::Module& module, uint64_t seed) {
  const torch::NoGradGuard no_grad;
  for (const auto& parameter : module.parameters()) {
    parameter.copy_(normal(parameter.sizes(), seed++).mul(0.3));
  }
}

at::Tensor share(const at::Tensor& batch, const RankContext& context) {
  return batch.chunk(context.world_size())[context.rank()];
}

at::Tensor flat_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> parts;
  for (const auto& parameter : module.parameters()) {
    parts.push_back(parameter.detach().reshape({-1}).to(torch::kDouble));
  }
  return torch::cat(parts);
}

std::string text_of(const std::exception_ptr& error) {
  return error ? message_of(error) : std::string();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

MlpImpl::MlpImpl(at::ScalarType dtype)
    : net(register_module(
          "net",
          torch::nn::Sequential(
              torch::nn::Linear(2, 10),
              torch::nn::ReLU(),
              torch::nn::Linear(10, 50),
              torch::nn::ReLU(),
              torch::nn::Linear(50, 4)))) {
  net->to(dtype);
  fill(*net, 7);
}

} // namespace tandem::test
