#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::autograd {
struct Node;
} // namespace torch::autograd

namespace tandem::detail {

/// By parameter: whether no path through the graph of `outputs` leads to its
/// accumulator. `accumulators` maps those to the parameters' indices.
std::vector<bool> find_unreached(
    const std::vector<at::Tensor>& outputs,
    const std::unordered_map<const torch::autograd::Node*, size_t>&
        accumulators,
    size_t num_parameters);

} // namespace tandem::detail
