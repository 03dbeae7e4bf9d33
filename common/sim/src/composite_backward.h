#pragma once

#include <vector>

#include <torch/csrc/autograd/function.h>

#include <tandem/core/detail/torch_compat.h>

#include "alias_map.h"

namespace tandem::sim {

/// A graph that the CPU recorded on aliases, as one node of the device's graph:
/// see Note [Composites of the CPU].
class CompositeBackward final : public torch::autograd::Node {
 public:
  using Variables = torch::autograd::variable_list;

  explicit CompositeBackward(at::Device device) : device_(device) {}

  std::string name() const override {
    return "SimCompositeBackward";
  }
  Variables apply(Variables&& gradients) override;
  void release_variables() override;

  /// Makes `alias` a leaf of the inner graph whose gradient goes to `tensor`.
  void add_leaf(const at::Tensor& alias, const at::Tensor& tensor);
  /// The bytes of a device tensor that the inner graph may have saved.
  void keep(const at::Tensor& tensor);
  /// The next input of this node is the gradient of `result`.
  void add_result(const at::Tensor& result) {
    results_.push_back(result);
  }

 private:
  Variables inner_gradients(
      const Variables& results,
      const Variables& gradients,
      AliasMap& aliases) const;

  at::Device device_;
  /// Of the inner graph.
  Variables leaves_;
  Variables results_;
  std::vector<c10::Storage> kept_;
};

/// Makes `node` the history of `outputs`, the device's tensors for `results` of
/// the inner graph. Where a result has no history in there, the output has none
/// either.
void connect_results(
    const detail::NodePtr& node,
    const torch::autograd::variable_list& results,
    torch::autograd::variable_list outputs);

} // namespace tandem::sim
