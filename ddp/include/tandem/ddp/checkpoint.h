#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <tandem/core/parallel.h>
#include <tandem/core/tensor_tree.h>
#include <tandem/core/tree_visitors.h>

namespace tandem::ddp {

namespace detail {

/// Runs the module on these tensors in place of the inputs' own; returns its
/// output's.
using Recompute =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// The outputs of `recompute` on `inputs`, with one node for their whole graph.
std::vector<at::Tensor> checkpoint_tensors(
    const std::shared_ptr<torch::nn::Module>& module,
    std::vector<at::Tensor> inputs,
    Recompute recompute);

} // namespace detail

/// Calls `module` without keeping its activations; backward computes them once
/// more. Memory for time: that of the inputs in place of all that lies between.
///
/// 1. Random numbers are drawn again as they were in forward, on the CPU and on
///    the devices of the inputs; autocast and the like are as they were.
/// 2. The recomputation leaves buffers as they were: statistics count a batch
///    once.
/// 3. Each parameter's gradient comes once per call, so wrappers, unused
///    parameters and static graphs see nothing of it.
/// 4. Inputs that are no tensors are copied; the module must use no tensor that
///    requires grad but its inputs and parameters.
///
/// **Throws** `ConfigError` from a backward that creates a graph.
/// **Source**: `torch.utils.checkpoint`; Chen et al.: "Training Deep Nets with
/// Sublinear Memory Cost", 2016
template <typename M, typename... Args>
auto checkpoint(const std::shared_ptr<M>& module, Args&&... args)
    -> tandem::detail::CallResult<tandem::detail::CallForward, M, Args...> {
  using Result =
      tandem::detail::CallResult<tandem::detail::CallForward, M, Args...>;
  using Stored = std::tuple<std::decay_t<Args>...>;
  const Stored stored(args...);
  std::optional<Result> first;
  // The first call, here and now, leaves its result; later ones only tensors.
  auto keep = std::make_shared<std::optional<Result>*>(&first);
  auto run = [module, stored, keep](const std::vector<at::Tensor>& inputs) {
    auto copy = stored;
    TensorReplacer replacer(inputs);
    std::apply([&](auto&... each) { (visit_tree(each, replacer), ...); }, copy);
    auto result = std::apply(
        [&](auto&... each) { return module->forward(each...); },
        copy);
    auto tensors = tensors_in(result);
    if (*keep != nullptr) {
      (*keep)->emplace(std::move(result));
    }
    return tensors;
  };
  const auto outputs =
      detail::checkpoint_tensors(module, tensors_in(stored), run);
  *keep = nullptr;
  TensorReplacer replacer(outputs);
  visit_tree(*first, replacer);
  return std::move(*first);
}

template <typename M, typename... Args>
auto checkpoint(const torch::nn::ModuleHolder<M>& module, Args&&... args) {
  return checkpoint(module.ptr(), std::forward<Args>(args)...);
}

} // namespace tandem::ddp
