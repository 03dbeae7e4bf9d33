#include "module_tensors.h"

namespace tandem::detail {

ModuleTensors::ModuleTensors(const torch::nn::Module& module)
    : parameters(unique_parameters(module)), buffers(unique_buffers(module)) {
  for (const auto& parameter : parameters) {
    (parameter.tensor.requires_grad() ? trained : frozen).push_back(parameter);
  }
}

std::vector<at::Tensor> ModuleTensors::buffer_handles() const {
  std::vector<at::Tensor> result;
  for (const auto& buffer : buffers) {
    result.push_back(buffer.tensor);
  }
  return result;
}

std::vector<at::Tensor> ModuleTensors::handles() const {
  std::vector<at::Tensor> result;
  for (const auto& parameter : parameters) {
    result.push_back(parameter.tensor);
  }
  const auto of_buffers = buffer_handles();
  result.insert(result.end(), of_buffers.begin(), of_buffers.end());
  return result;
}

} // namespace tandem::detail
