#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

namespace tandem::bench {

/// Classes of an image.
inline constexpr int64_t kNumClasses = 10;

/// The networks that the program trains, by the names of `--model` and
/// `--workload`.
enum class Architecture {
  /// Two convolutions and two linear layers, 206,922 parameters; neither
  /// BatchNorm nor dropout, so that every strategy computes the same.
  kCnn,
  /// Two linear layers, 203,530 parameters.
  kMlp,
  /// Three linear layers, 20,037,642 parameters: much to communicate.
  kMlpWide,
  /// A small `TokenModel`, 0.2 M parameters.
  kTransformer,
  /// A `ResidualStack` between two linear layers: 3,000 tensors of 42 MB in
  /// all.
  kManySmallTensors,
  /// For `tandem verify` only: a small network with a `Drift` in the middle.
  kProbe,
};

std::string architecture_name(Architecture architecture);
/// The reverse. **Throws** `ConfigError` naming them all.
Architecture architecture_from_name(const std::string& name);

/// A classifier of 28 x 28 grey images into ten classes; with `kTransformer`,
/// of the next token of a sequence.
class ClassifierImpl : public torch::nn::Cloneable<ClassifierImpl> {
 public:
  explicit ClassifierImpl(Architecture architecture);
  void reset() override;

  /// `input`: [N, 1, 28, 28]; returns scores, [N, 10]. Tokens and their scores
  /// as `TokenModel` has them.
  at::Tensor forward(const at::Tensor& input);

 private:
  Architecture architecture_;
  torch::nn::Sequential layers_{nullptr};
};
TORCH_MODULE(Classifier);

} // namespace tandem::bench
