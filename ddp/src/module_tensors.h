#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/named_tensors.h>
#include <tandem/ddp/options.h>

namespace tandem::detail {

/// How a gradient is reduced.
enum class GradientRole {
  /// In a bucket.
  kBucket,
  /// In a bucket after all others'.
  kDelayed,
  /// By itself, as rows.
  kSparse,
};

/// What of a parameter must stay as it was when the module was wrapped.
struct TensorType {
  at::ScalarType dtype;
  at::Device device;
  std::vector<int64_t> sizes;
};

/// The tensors of the wrapped module, in registration order, without those that
/// the options say to ignore.
struct ModuleTensors {
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  /// The parameters that required grad when the module was wrapped.
  std::vector<NamedTensor> trained;
  /// Theirs.
  std::vector<GradientRole> roles;
  std::vector<TensorType> wrapped_as;
  /// The others: neither averaged nor expected to get gradients.
  std::vector<NamedTensor> frozen;
  /// Names registered without a tensor, as LibTorch does for an absent bias.
  std::vector<std::string> undefined;
  /// Layers that meet other ranks in forward.
  int64_t num_sync_batch_norms;

  /// What the options say to ignore, parameters and buffers.
  std::vector<NamedTensor> ignored;

  ModuleTensors(
      const torch::nn::Module& module,
      const DistributedDataParallelOptions& options);

  std::vector<at::Tensor> buffer_handles() const;
  /// Of all parameters, then all buffers.
  std::vector<at::Tensor> handles() const;
};

} // namespace tandem::detail
