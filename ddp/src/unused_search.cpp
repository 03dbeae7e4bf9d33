#include "unused_search.h"

#include <unordered_set>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace tandem::detail {

std::vector<bool> find_unreached(
    const std::vector<at::Tensor>& outputs,
    const std::unordered_map<const torch::autograd::Node*, size_t>&
        accumulators,
    size_t num_parameters) {
  std::vector<bool> is_unreached(num_parameters, true);
  std::unordered_set<const torch::autograd::Node*> seen;
  std::vector<const torch::autograd::Node*> to_visit;
  const auto visit = [&](const torch::autograd::Node* node) {
    if (node != nullptr && seen.insert(node).second) {
      to_visit.push_back(node);
    }
  };
  for (const auto& output : outputs) {
    if (output.defined() && output.requires_grad()) {
      visit(torch::autograd::impl::gradient_edge(output).function.get());
    }
  }
  while (!to_visit.empty()) {
    const auto* node = to_visit.back();
    to_visit.pop_back();
    const auto found = accumulators.find(node);
    if (found != accumulators.end()) {
      is_unreached[found->second] = false;
    }
    for (const auto& edge : node->next_edges()) {
      visit(edge.function.get());
    }
  }
  return is_unreached;
}

} // namespace tandem::detail
