#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace tandem::detail {

/// A parameter or buffer of the wrapped module.
struct BaseTensor {
  std::string name;
  at::Tensor tensor;
  bool is_buffer;
};

/// A parameter or buffer of a replica. Several may stand for one base tensor:
/// weights that are tied in the wrapped module but not in its clone.
struct ReplicaTensor {
  at::Tensor tensor;
  /// Index of the base tensor it stands for.
  size_t base;
};

/// The wrapped module's tensors, each once, and those of the other replicas.
struct TensorTable {
  std::vector<BaseTensor> base;
  /// Of replica 1, 2, ...
  std::vector<std::vector<ReplicaTensor>> replicas;
};

/// Parameters, then buffers.
std::vector<BaseTensor> list_base_tensors(const torch::nn::Module& module);

/// Finds for every tensor of `replica` the base tensor of that name. `subject`
/// begins messages.
/// **Throws** `ConfigError` if names or shapes differ, or tensors are tied in
/// the replica only.
std::vector<ReplicaTensor> match_tensors(
    const torch::nn::Module& base_module,
    const std::vector<BaseTensor>& base,
    const torch::nn::Module& replica,
    const std::string& subject);

} // namespace tandem::detail
