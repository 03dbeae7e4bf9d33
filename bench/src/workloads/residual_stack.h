#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

namespace tandem::bench {

/// Many thin layers, each adding a little to what it gets: a network of many
/// small tensors, two for each layer.
class ResidualStackImpl : public torch::nn::Cloneable<ResidualStackImpl> {
 public:
  ResidualStackImpl(int64_t num_layers, int64_t width);
  void reset() override;

  /// `input` and what is returned: [N, width].
  at::Tensor forward(const at::Tensor& input);

 private:
  int64_t num_layers_;
  int64_t width_;
  torch::nn::ModuleList layers_{nullptr};
};
TORCH_MODULE(ResidualStack);

} // namespace tandem::bench
