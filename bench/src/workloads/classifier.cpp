#include "workloads/classifier.h"

#include <fmt/format.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <tandem/core/errors.h>

#include "workloads/drift.h"

namespace tandem::bench {

namespace {

using torch::nn::Conv2d;
using torch::nn::Conv2dOptions;
using torch::nn::Flatten;
using torch::nn::Linear;
using torch::nn::MaxPool2d;
using torch::nn::ReLU;
using torch::nn::Sequential;

constexpr int64_t kImagePixels = 28 * 28;
constexpr int64_t kNumClasses = 10;

Sequential make_cnn() {
  Sequential layers(
      Conv2d(Conv2dOptions(1, 16, 3).padding(1)),
      ReLU(),
      MaxPool2d(2), // [N, 16, 14, 14]
      Conv2d(Conv2dOptions(16, 32, 3).padding(1)),
      ReLU(),
      MaxPool2d(2), // [N, 32, 7, 7]
      Flatten(),
      Linear(32 * 7 * 7, 128),
      ReLU(),
      Linear(128, kNumClasses));
  return layers;
}

Sequential make_mlp() {
  Sequential layers(
      Flatten(),
      Linear(kImagePixels, 256),
      ReLU(),
      Linear(256, kNumClasses));
  return layers;
}

Sequential make_probe() {
  Sequential layers(
      Flatten(),
      Linear(kImagePixels, 16),
      Drift(),
      Linear(16, kNumClasses));
  return layers;
}

Sequential make_layers(Architecture architecture) {
  switch (architecture) {
    case Architecture::kCnn:
      return make_cnn();
    case Architecture::kMlp:
      return make_mlp();
    case Architecture::kProbe:
      break;
  }
  return make_probe();
}

} // namespace

std::string architecture_name(Architecture architecture) {
  switch (architecture) {
    case Architecture::kCnn:
      return "cnn";
    case Architecture::kMlp:
      return "mlp";
    case Architecture::kProbe:
      break;
  }
  return "probe";
}

Architecture architecture_from_name(const std::string& name) {
  for (const auto architecture :
       {Architecture::kCnn, Architecture::kMlp, Architecture::kProbe}) {
    if (architecture_name(architecture) == name) {
      return architecture;
    }
  }
  throw ConfigError(
      fmt::format("model: expected cnn, mlp or probe, got '{}'", name));
}

ClassifierImpl::ClassifierImpl(Architecture architecture)
    : architecture_(architecture) {
  reset();
}

void ClassifierImpl::reset() {
  layers_ = register_module("layers", make_layers(architecture_));
}

at::Tensor ClassifierImpl::forward(const at::Tensor& images) {
  return layers_->forward(images);
}

} // namespace tandem::bench
