#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// The tensors of the wrapped module, in registration order.
struct ModuleTensors {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  /// The parameters that required grad when the module was wrapped.
  std::vector<NamedTensor> trained;
  /// The others: neither averaged nor expected to get gradients.
  std::vector<NamedTensor> frozen;
  /// Names registered without a tensor, as LibTorch does for an absent bias.
  std::vector<std::string> undefined;
  /// Layers that meet other ranks in forward.
  int64_t num_sync_batch_norms;

  explicit ModuleTensors(const torch::nn::Module& module);

  std::vector<at::Tensor> buffer_handles() const;
  /// Of all parameters, then all buffers.
  std::vector<at::Tensor> handles() const;
};

} // namespace tandem::detail
