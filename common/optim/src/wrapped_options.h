#pragma once

#include <torch/optim/optimizer.h>

namespace tandem::detail {

/// Gives the groups of `to` copies of the options of the same groups of `from`.
void copy_options(
    const torch::optim::Optimizer& from,
    torch::optim::Optimizer& to);

} // namespace tandem::detail
