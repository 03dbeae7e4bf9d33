#pragma once

#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

/// Helpers of the tests of simulated devices. Every test case is a process of
/// its own, so each makes its devices.
namespace tandem::sim_test {

using Tensors = std::vector<at::Tensor>;

/// Makes `count` devices without limits, for kernels on one thread.
void start_devices(int64_t count = 4);

/// Normal numbers on the CPU that depend on the seed alone.
at::Tensor normal(at::IntArrayRef sizes, uint64_t seed);

/// Integers from 0 to `limit` - 1, likewise.
at::Tensor integers(int64_t limit, at::IntArrayRef sizes, uint64_t seed);

/// Same dtype, layout, shape and bytes, wherever the tensors lie.
bool same_bits(const at::Tensor& left, const at::Tensor& right);

/// CHECKs that for all tensors of two lists.
void check_same_bits(const Tensors& actual, const Tensors& expected);

/// A module, what it is fed with, and how.
struct Recipe {
  std::string name;
  std::function<std::shared_ptr<torch::nn::Module>()> make;
  Tensors data;
  std::function<at::Tensor(torch::nn::Module&, const Tensors&)> forward;
};

/// `make` gives a module holder; `forward` takes its module and the data.
template <typename Make, typename Forward>
Recipe recipe(
    const std::string& name,
    const Make& make,
    const Tensors& data,
    const Forward& forward) {
  using Impl = typename std::invoke_result_t<const Make&>::ContainedType;
  return {
      name,
      [make] { return make().ptr(); },
      data,
      [forward](torch::nn::Module& module, const Tensors& inputs) {
        return forward(dynamic_cast<Impl&>(module), inputs);
      }};
}

/// For modules whose forward takes the one tensor of the data.
template <typename Make>
Recipe recipe(const std::string& name, const Make& make, const Tensors& data) {
  return recipe(name, make, data, [](auto& module, const Tensors& inputs) {
    return module.forward(inputs.at(0));
  });
}

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const Tensors& parameters)>;

MakeOptimizer sgd_with_momentum();

/// Trains the recipe's module for three steps on `device`, all seeds fixed.
/// Returns losses, gradients of inputs, parameters, their gradients and
/// buffers.
Tensors three_steps(
    const Recipe& recipe,
    at::Device device,
    const MakeOptimizer& make_optimizer = sgd_with_momentum());

/// CHECKs that three steps on sim:0 equal those on the CPU bit for bit.
void check_trains_as_on_cpu(
    const Recipe& recipe,
    const MakeOptimizer& make_optimizer = sgd_with_momentum());

} // namespace tandem::sim_test
