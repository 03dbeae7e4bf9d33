#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/ddp/distributed_data_parallel.h>
#include <tandem/testing/rank_threads.h>

#include "modules.h"
#include "tensors.h"
#include "text.h"

namespace tandem::test {

using testing::RankContext;
using testing::run_ranks;
using testing::try_ranks;
using Options = DistributedDataParallelOptions;

/// Rows of the whole world's batch that belong to this rank.
at::Tensor share(const at::Tensor& batch, const RankContext& context);

/// All parameters in one vector, as they are now.
at::Tensor flat_parameters(const torch::nn::Module& module);

/// Of a gradient with one element. **Throws** if it is undefined.
double value_of(const at::Tensor& grad);

/// Message of a rank's error; empty if it had none.
std::string text_of(const std::exception_ptr& error);

template <typename E>
bool is(const std::exception_ptr& error) {
  try {
    if (error) {
      std::rethrow_exception(error);
    }
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
  return false;
}

/// The one weight, 1, times the input: its gradient is the inputs' sum.
struct ScaleImpl : torch::nn::Module {
  explicit ScaleImpl(at::ScalarType dtype = at::kFloat)
      : weight(register_parameter("weight", torch::ones({1}, dtype))) {}
  at::Tensor forward(const at::Tensor& input) {
    return weight * input;
  }
  /// `value` as an input of the weight's type.
  at::Tensor input(double value) const {
    return torch::full({1}, value, weight.scalar_type());
  }
  at::Tensor weight;
};
TORCH_MODULE(Scale);

/// The MLP with the same values on every thread.
class Mlp : public torch::nn::ModuleHolder<MlpImpl> {
 public:
  explicit Mlp(at::ScalarType dtype = at::kDouble);
};

/// Two layers that a caller may use apart.
struct TowersImpl : torch::nn::Module {
  TowersImpl()
      : left(register_module("left", Scale(at::kDouble))),
        right(register_module("right", Scale(at::kDouble))) {}
  std::pair<at::Tensor, at::Tensor> forward(const at::Tensor& input) {
    return {left(input), right(input)};
  }
  Scale left;
  Scale right;
};
TORCH_MODULE(Towers);

constexpr int64_t kRows = 12;

/// Trains by SGD on rows of two numbers, the same whole-world batch for every
/// world; each step has its own. Returns the parameters after each step.
/// [steps, numel]
template <typename Forward>
at::Tensor train(
    Forward&& forward,
    torch::nn::Module& module,
    const RankContext* context,
    int64_t steps,
    at::ScalarType dtype = at::kDouble) {
  torch::optim::SGD optimizer(
      module.parameters(),
      torch::optim::SGDOptions(0.05).momentum(0.5));
  std::vector<at::Tensor> after;
  for (int64_t step = 0; step < steps; ++step) {
    auto batch = normal({kRows, 2}, static_cast<uint64_t>(step), dtype);
    if (context != nullptr) {
      batch = share(batch, *context);
    }
    optimizer.zero_grad();
    forward(batch).square().mean().backward();
    optimizer.step();
    after.push_back(flat_parameters(module));
  }
  return torch::stack(after);
}

/// The same with the bare module, and with the wrapped one as a rank.
template <typename Net>
at::Tensor train_alone(
    Net net,
    int64_t steps,
    at::ScalarType dtype = at::kDouble) {
  return train(
      [&](const at::Tensor& input) { return net->forward(input); },
      *net,
      nullptr,
      steps,
      dtype);
}

template <typename Net>
at::Tensor train_as_rank(
    Net net,
    const RankContext& context,
    int64_t steps,
    const Options& options = {},
    at::ScalarType dtype = at::kDouble) {
  DistributedDataParallel model(net, options);
  return train(
      [&](const at::Tensor& input) { return model(input); },
      *net,
      &context,
      steps,
      dtype);
}

} // namespace tandem::test
