#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace tandem {

/// A parameter or buffer with the name that every message uses for it.
struct NamedTensor {
  /// The first name under which the module tree registers it.
  std::string name;
  at::Tensor tensor;
};

/// Parameters in registration order (a module's own, then its children's). A
/// tensor registered twice (tied weights) is listed once, by its first name.
std::vector<NamedTensor> unique_parameters(const torch::nn::Module& module);

/// Buffers, likewise. Undefined buffers are left out.
std::vector<NamedTensor> unique_buffers(const torch::nn::Module& module);

/// Sum of the tensors' sizes.
int64_t total_bytes(const std::vector<NamedTensor>& tensors);

/// "3 parameters, 1,200 bytes"-style summary for `describe()`.
std::string summarize(
    const std::vector<NamedTensor>& tensors,
    const std::string& noun);

} // namespace tandem
