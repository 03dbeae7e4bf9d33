#include "support.h"

namespace tandem::test {

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

double value_of(const at::Tensor& grad) {
  TORCH_CHECK(grad.defined(), "expected a gradient");
  return grad.item<double>();
}

std::string text_of(const std::exception_ptr& error) {
  return error ? message_of(error) : std::string();
}

Mlp::Mlp(at::ScalarType dtype) : ModuleHolder(std::make_shared<MlpImpl>()) {
  get()->to(dtype);
  fill(**this, 7);
}

} // namespace tandem::test
