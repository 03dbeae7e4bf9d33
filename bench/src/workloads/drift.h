#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

namespace tandem::bench {

/// Multiplies its input by 1 plus a buffer, "drift", which grows at every call
/// in train mode: a layer whose output is wrong as soon as a rank or replica
/// keeps a buffer of its own.
class DriftImpl : public torch::nn::Cloneable<DriftImpl> {
 public:
  DriftImpl();
  void reset() override;
  at::Tensor forward(const at::Tensor& input);

 private:
  at::Tensor drift_; // []
};
TORCH_MODULE(Drift);

} // namespace tandem::bench
