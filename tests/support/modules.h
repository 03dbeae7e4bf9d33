// Modules of every common kind, most with a batch to train them on. All can be
// cloned, so that every wrapper takes them.
#pragma once

#include <memory>
#include <mutex>

#include <torch/torch.h>

#include "tensors.h"

namespace tandem::test {

struct Batch {
  at::Tensor input;
  at::Tensor target;
};

/// A new module in double on the CPU, with values that depend on the seed
/// alone, on any thread.
template <typename M, typename... Args>
std::shared_ptr<M> make_net(uint64_t seed, const Args&... args) {
  static std::mutex generator_mutex;
  const std::lock_guard<std::mutex> lock(generator_mutex);
  torch::manual_seed(seed);
  auto net = std::make_shared<M>(args...);
  net->to(torch::kDouble);
  return net;
}

struct MlpImpl : torch::nn::Cloneable<MlpImpl> {
  MlpImpl() {
    reset();
  }
  void reset() override {
    net = register_module(
        "net",
        torch::nn::Sequential(
            torch::nn::Linear(2, 10),
            torch::nn::ReLU(),
            torch::nn::Linear(10, 50),
            torch::nn::ReLU(),
            torch::nn::Linear(50, 4)));
  }
  at::Tensor forward(const at::Tensor& input) {
    return net->forward(input);
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 2}, seed), normal({rows, 4}, seed + 1)};
  }
  torch::nn::Sequential net{nullptr};
};

/// Convolutions with a BatchNorm that runs on its stored statistics.
struct ConvNetImpl : torch::nn::Cloneable<ConvNetImpl> {
  ConvNetImpl() {
    reset();
  }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(2, 3, 3));
    norm = register_module("norm", torch::nn::BatchNorm2d(3));
    norm->eval();
    linear = register_module("linear", torch::nn::Linear(3 * 4 * 4, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    norm->eval();
    return linear(torch::relu(norm(conv(input))).flatten(1)).log_softmax(1);
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 2, 6, 6}, seed), normal({rows, 2}, seed + 1)};
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::BatchNorm2d norm{nullptr};
  torch::nn::Linear linear{nullptr};
};

struct RecurrentImpl : torch::nn::Cloneable<RecurrentImpl> {
  RecurrentImpl() {
    reset();
  }
  void reset() override {
    lstm = register_module(
        "lstm",
        torch::nn::LSTM(
            torch::nn::LSTMOptions(3, 4).batch_first(true).bidirectional(
                true)));
    linear = register_module("linear", torch::nn::Linear(8, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    return linear(std::get<0>(lstm(input)).select(1, -1));
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 5, 3}, seed), normal({rows, 2}, seed + 1)};
  }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear linear{nullptr};
};

struct AttentionImpl : torch::nn::Cloneable<AttentionImpl> {
  AttentionImpl() {
    reset();
  }
  void reset() override {
    layer = register_module(
        "layer",
        torch::nn::TransformerEncoderLayer(
            torch::nn::TransformerEncoderLayerOptions(8, 2)
                .dim_feedforward(16)
                .dropout(0)));
    linear = register_module("linear", torch::nn::Linear(8, 2));
  }
  /// [N, T, E]
  at::Tensor forward(const at::Tensor& input) {
    return linear(layer(input.transpose(0, 1)).mean(0));
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 3, 8}, seed), normal({rows, 2}, seed + 1)};
  }
  torch::nn::TransformerEncoderLayer layer{nullptr};
  torch::nn::Linear linear{nullptr};
};

/// One weight under two names: used twice, to be counted once.
struct TiedImpl : torch::nn::Cloneable<TiedImpl> {
  TiedImpl() {
    reset();
  }
  void reset() override {
    first = register_parameter("first", normal({4, 4}, 7));
    second = register_parameter("second", first);
  }
  at::Tensor forward(const at::Tensor& input) {
    return input.mm(first).tanh().mm(second);
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 4}, seed), normal({rows, 4}, seed + 1)};
  }
  at::Tensor first;
  at::Tensor second;
};

/// A frozen layer between two trained ones.
struct FrozenImpl : torch::nn::Cloneable<FrozenImpl> {
  FrozenImpl() {
    reset();
  }
  void reset() override {
    before = register_module("before", torch::nn::Linear(3, 5));
    frozen = register_module("frozen", torch::nn::Linear(5, 5));
    after = register_module("after", torch::nn::Linear(5, 2));
    for (auto& parameter : frozen->parameters()) {
      parameter.set_requires_grad(false);
    }
  }
  at::Tensor forward(const at::Tensor& input) {
    return after(frozen(before(input)).tanh());
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 3}, seed), normal({rows, 2}, seed + 1)};
  }
  torch::nn::Linear before{nullptr};
  torch::nn::Linear frozen{nullptr};
  torch::nn::Linear after{nullptr};
};

/// Parameters of 0 dimensions, no, one and prime numbers of elements.
struct OddShapesImpl : torch::nn::Cloneable<OddShapesImpl> {
  OddShapesImpl() {
    reset();
  }
  void reset() override {
    scale = register_parameter("scale", torch::tensor(0.5));
    one = register_parameter("one", torch::ones({1}));
    seven = register_parameter("seven", normal({7}, 3));
    prime = register_parameter("prime", normal({1009}, 4));
    empty = register_parameter("empty", torch::zeros({0}));
  }
  at::Tensor forward(const at::Tensor& input) {
    const auto mixed = input * seven * scale + one + empty.sum();
    return mixed.sum(1, /*keepdim=*/true) * prime;
  }
  static Batch batch(int64_t rows, uint64_t seed) {
    return {normal({rows, 7}, seed), normal({rows, 1009}, seed + 1)};
  }
  at::Tensor scale;
  at::Tensor one;
  at::Tensor seven;
  at::Tensor prime;
  at::Tensor empty;
};

/// BatchNorm and dropout: what eval mode changes.
struct NormDropoutImpl : torch::nn::Cloneable<NormDropoutImpl> {
  NormDropoutImpl() {
    reset();
  }
  void reset() override {
    norm = register_module("norm", torch::nn::BatchNorm1d(3));
    dropout = register_module("dropout", torch::nn::Dropout(0.5));
  }
  at::Tensor forward(const at::Tensor& input) {
    return dropout(norm(input));
  }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
};

} // namespace tandem::test
