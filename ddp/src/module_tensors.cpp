#include "module_tensors.h"

#include "rank_statistics.h"

namespace tandem::detail {

namespace {

/// Reads what `named_parameters` leaves out.
struct RegisteredParameters : torch::nn::Module {
  static std::vector<std::string> undefined_of(
      const torch::nn::Module& module,
      const std::string& prefix) {
    std::vector<std::string> names;
    for (const auto& item : module.*(&RegisteredParameters::parameters_)) {
      if (!item.value().defined()) {
        names.push_back(prefix + item.key());
      }
    }
    return names;
  }
};

std::vector<std::string> undefined_parameters(const torch::nn::Module& module) {
  auto names = RegisteredParameters::undefined_of(module, "");
  for (const auto& child :
       module.named_modules(/*name_prefix=*/"", /*include_self=*/false)) {
    const auto more =
        RegisteredParameters::undefined_of(*child.value(), child.key() + ".");
    names.insert(names.end(), more.begin(), more.end());
  }
  return names;
}

} // namespace

ModuleTensors::ModuleTensors(const torch::nn::Module& module)
    : parameters(unique_parameters(module)),
      buffers(unique_buffers(module)),
      undefined(undefined_parameters(module)),
      num_sync_batch_norms(count_sync_batch_norms(module)) {
  for (const auto& parameter : parameters) {
    (parameter.tensor.requires_grad() ? trained : frozen).push_back(parameter);
  }
}

std::vector<at::Tensor> ModuleTensors::buffer_handles() const {
  std::vector<at::Tensor> result;
  result.reserve(buffers.size());
  for (const auto& buffer : buffers) {
    result.push_back(buffer.tensor);
  }
  return result;
}

std::vector<at::Tensor> ModuleTensors::handles() const {
  std::vector<at::Tensor> result;
  result.reserve(parameters.size() + buffers.size());
  for (const auto& parameter : parameters) {
    result.push_back(parameter.tensor);
  }
  const auto of_buffers = buffer_handles();
  result.insert(result.end(), of_buffers.begin(), of_buffers.end());
  return result;
}

} // namespace tandem::detail
