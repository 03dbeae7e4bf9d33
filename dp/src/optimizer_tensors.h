#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

namespace tandem::detail {

/// The tensors of the state of one of LibTorch's optimizers, some undefined;
/// nothing for another kind of optimizer, whose state has no common form.
std::optional<std::vector<at::Tensor>> optimizer_tensors(
    const torch::optim::Optimizer& optimizer);

} // namespace tandem::detail
