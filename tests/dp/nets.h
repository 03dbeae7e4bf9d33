#pragma once

#include <memory>
#include <tuple>
#include <vector>

#include <torch/torch.h>

#include <tandem/dp/data_parallel.h>

#include "devices.h"
#include "modules.h"
#include "tensors.h"
#include "text.h"

/// Modules and helpers of the tests of DataParallel. Everything is double: the
/// only difference to one device is then the order of additions.
namespace tandem::dp_test {

using namespace tandem::test;

/// One replica on each of the first `count` devices.
inline DataParallelOptions on_devices(size_t count) {
  return DataParallelOptions()
      .devices(devices(count))
      .allow_duplicate_devices(true);
}

/// For tests that are about options and need no device.
inline DataParallelOptions cpus(size_t count) {
  return DataParallelOptions().devices(
      std::vector<at::Device>(count, at::kCPU));
}

/// `module`, moved to the first device.
template <typename M>
std::shared_ptr<M> on_first(std::shared_ptr<M> module) {
  module->to(device());
  return module;
}

/// A net to wrap: that of `make_net`, on the first device.
template <typename M, typename... Args>
std::shared_ptr<M> make_base(uint64_t seed, const Args&... args) {
  return on_first(make_net<M>(seed, args...));
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
