#include "workloads/classifier.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <tandem/core/errors.h>

#include "workloads/drift.h"
#include "workloads/residual_stack.h"
#include "workloads/token_model.h"

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
constexpr int64_t kManyTensors = 3000;

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

Sequential make_mlp_wide() {
  constexpr int64_t width = 4096;
  Sequential layers(
      Flatten(),
      Linear(kImagePixels, width),
      ReLU(),
      Linear(width, width),
      ReLU(),
      Linear(width, kNumClasses));
  return layers;
}

Sequential make_transformer() {
  Sequential layers{TokenModel()};
  return layers;
}

Sequential make_many_small_tensors() {
  constexpr int64_t width = 83;
  // Each layer has a weight and a bias; the first and the last are no part of
  // the stack.
  constexpr int64_t stacked_layers = kManyTensors / 2 - 2;
  Sequential layers(
      Flatten(),
      Linear(kImagePixels, width),
      ResidualStack(stacked_layers, width),
      Linear(width, kNumClasses));
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

struct Entry {
  Architecture architecture;
  const char* name;
  Sequential (*make_layers)();
};

constexpr std::array kEntries{
    Entry{Architecture::kCnn, "cnn", make_cnn},
    Entry{Architecture::kMlp, "mlp", make_mlp},
    Entry{Architecture::kMlpWide, "mlp-wide", make_mlp_wide},
    Entry{Architecture::kTransformer, "transformer", make_transformer},
    Entry{
        Architecture::kManySmallTensors,
        "many-small-tensors",
        make_many_small_tensors},
    Entry{Architecture::kProbe, "probe", make_probe}};

const Entry& entry_of(Architecture architecture) {
  return kEntries.at(static_cast<size_t>(architecture));
}

} // namespace

std::string architecture_name(Architecture architecture) {
  return entry_of(architecture).name;
}

Architecture architecture_from_name(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& entry : kEntries) {
    if (entry.name == name) {
      return entry.architecture;
    }
    names.emplace_back(entry.name);
  }
  throw ConfigError(fmt::format(
      "model: expected one of {}, got '{}'",
      fmt::join(names, ", "),
      name));
}

ClassifierImpl::ClassifierImpl(Architecture architecture)
    : architecture_(architecture) {
  reset();
}

void ClassifierImpl::reset() {
  layers_ = register_module("layers", entry_of(architecture_).make_layers());
}

at::Tensor ClassifierImpl::forward(const at::Tensor& input) {
  return layers_->forward(input);
}

} // namespace tandem::bench
