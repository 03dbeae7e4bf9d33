#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

namespace tandem::bench {

/// The networks that the program trains, by the names of `--model`.
enum class Architecture {
  /// Two convolutions and two linear layers, 206,922 parameters; neither
  /// BatchNorm nor dropout, so that every strategy computes the same.
  kCnn,
  /// Two linear layers, 203,530 parameters.
  kMlp,
  /// For `tandem verify` only: a small network with a `Drift` in the middle.
  kProbe,
};

std::string architecture_name(Architecture architecture);
/// The reverse. **Throws** `ConfigError` naming them all.
Architecture architecture_from_name(const std::string& name);

/// A classifier of 28 x 28 grey images into ten classes.
class ClassifierImpl : public torch::nn::Cloneable<ClassifierImpl> {
 public:
  explicit ClassifierImpl(Architecture architecture);
  void reset() override;

  /// `images`: [N, 1, 28, 28]; returns scores, [N, 10].
  at::Tensor forward(const at::Tensor& images);

 private:
  Architecture architecture_;
  torch::nn::Sequential layers_{nullptr};
};
TORCH_MODULE(Classifier);

} // namespace tandem::bench
