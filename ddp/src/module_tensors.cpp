#include "module_tensors.h"

#include <unordered_set>
#include <utility>

#include <torch/nn/modules/embedding.h>

#include "name_patterns.h"
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

/// Moves what is to be ignored from `tensors` to `ignored`.
std::vector<NamedTensor> without_ignored(
    std::vector<NamedTensor> tensors,
    const std::vector<std::string>& patterns,
    std::vector<NamedTensor>& ignored) {
  std::vector<NamedTensor> rest;
  for (auto& named : tensors) {
    auto& group = matches_any(named.name, patterns) ? ignored : rest;
    group.push_back(std::move(named));
  }
  return rest;
}

/// The weights of layers that were made with `sparse(true)`.
std::unordered_set<const at::TensorImpl*> sparse_weights(
    const torch::nn::Module& module) {
  std::unordered_set<const at::TensorImpl*> weights;
  for (const auto& part : module.modules()) {
    if (const auto* layer = part->as<torch::nn::EmbeddingImpl>()) {
      if (layer->options.sparse()) {
        weights.insert(layer->weight.unsafeGetTensorImpl());
      }
    } else if (const auto* bag = part->as<torch::nn::EmbeddingBagImpl>()) {
      if (bag->options.sparse()) {
        weights.insert(bag->weight.unsafeGetTensorImpl());
      }
    }
  }
  return weights;
}

} // namespace

ModuleTensors::ModuleTensors(
    const torch::nn::Module& module,
    const DistributedDataParallelOptions& options)
    : undefined(undefined_parameters(module)),
      num_sync_batch_norms(count_sync_batch_norms(module)) {
  const auto& to_ignore = options.params_and_buffers_to_ignore();
  parameters = without_ignored(unique_parameters(module), to_ignore, ignored);
  buffers = without_ignored(unique_buffers(module), to_ignore, ignored);
  const auto sparse = sparse_weights(module);
  for (const auto& parameter : parameters) {
    const auto& [name, tensor] = parameter;
    if (!tensor.requires_grad()) {
      frozen.push_back(parameter);
      continue;
    }
    trained.push_back(parameter);
    wrapped_as.push_back(
        {tensor.scalar_type(), tensor.device(), tensor.sizes().vec()});
    if (sparse.count(tensor.unsafeGetTensorImpl()) != 0 ||
        matches_any(name, options.sparse_params())) {
      roles.push_back(GradientRole::kSparse);
    } else if (matches_any(name, options.delay_all_reduce_params())) {
      roles.push_back(GradientRole::kDelayed);
    } else {
      roles.push_back(GradientRole::kBucket);
    }
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
