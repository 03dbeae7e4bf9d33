#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include <torch/torch.h>

#include <tandem/dp/data_parallel.h>

/// Modules and helpers of the tests of DataParallel. Everything is double: the
/// only difference to one device is then the order of additions.
namespace tandem::dp_test {

inline constexpr double kDoubleTolerance = 1e-10;

inline DataParallelOptions cpus(size_t count) {
  return DataParallelOptions().devices(
      std::vector<at::Device>(count, at::kCPU));
}

/// Normal numbers that depend on the seed alone.
inline at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return torch::randn(
      sizes,
      at::make_generator<at::CPUGeneratorImpl>(seed),
      torch::kDouble);
}

inline bool is_close(const at::Tensor& actual, const at::Tensor& expected) {
  return actual.defined() == expected.defined() &&
      (!actual.defined() ||
       (actual.sizes() == expected.sizes() &&
        actual.allclose(expected, kDoubleTolerance, kDoubleTolerance)));
}

inline bool are_close(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected) {
  return std::equal(
      actual.begin(),
      actual.end(),
      expected.begin(),
      expected.end(),
      is_close);
}

inline std::vector<at::Tensor> grads_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> grads;
  for (const auto& parameter : module.parameters()) {
    grads.push_back(parameter.grad());
  }
  return grads;
}

/// The text of what `call` throws; empty if it throws nothing.
template <typename Call>
std::string message_thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A new module in double with values that depend on the seed alone.
template <typename M, typename... Args>
std::shared_ptr<M> make_net(uint64_t seed, const Args&... args) {
  torch::manual_seed(seed);
  auto net = std::make_shared<M>(args...);
  net->to(torch::kDouble);
  return net;
}

/// Convolution and linear layer, as large as a test needs.
struct ConvLinearImpl : torch::nn::Cloneable<ConvLinearImpl> {
  ConvLinearImpl() {
    reset();
  }
  void reset() override {
    conv = register_module("conv", torch::nn::Conv2d(2, 2, 2));
    linear = register_module("linear", torch::nn::Linear(8, 2));
  }
  at::Tensor forward(const at::Tensor& input) {
    return linear(torch::tanh(conv(input)).flatten(1)).log_softmax(1);
  }
  static at::Tensor input(int64_t rows, uint64_t seed) {
    return normal({rows, 2, 3, 3}, seed);
  }
  torch::nn::Conv2d conv{nullptr};
  torch::nn::Linear linear{nullptr};
};

/// A module around any function of its arguments, without parameters.
template <typename Function>
struct LambdaImpl : torch::nn::Module {
  explicit LambdaImpl(Function f) : function(std::move(f)) {}
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<at::Device>& /*device*/) const override {
    return std::make_shared<LambdaImpl>(function);
  }
  template <typename... Args>
  auto forward(Args&&... args) -> decltype(std::declval<const Function&>()(
      std::forward<Args>(args)...)) {
    return function(std::forward<Args>(args)...);
  }
  Function function;
};

template <typename Function>
DataParallel<LambdaImpl<Function>> wrap_function(
    Function function,
    const DataParallelOptions& options) {
  return DataParallel<LambdaImpl<Function>>(
      std::make_shared<LambdaImpl<Function>>(std::move(function)),
      options);
}

} // namespace tandem::dp_test
