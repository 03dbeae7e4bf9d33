#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <tandem/comm/process_group.h>
#include <tandem/optim/optimizer_factory.h>

namespace tandem::detail {

/// All parameters of an optimizer's groups, one vector per group.
using GroupedParameters = std::vector<std::vector<at::Tensor>>;

GroupedParameters parameters_of(
    const std::vector<torch::optim::OptimizerParamGroup>& param_groups);

/// Says what is unfit to be shared out, and whether all ranks have the same.
/// **Collective**. **Throws** as `ZeroRedundancyOptimizer`'s constructor.
void agree_on_parameters(
    comm::ProcessGroup& group,
    const GroupedParameters& parameters);

/// Likewise, with the optimizer that `make` makes of such groups without
/// parameters: its groups and defaults are the resolved ones.
std::unique_ptr<torch::optim::Optimizer> agree_on_optimizer(
    comm::ProcessGroup& group,
    const std::vector<torch::optim::OptimizerParamGroup>& param_groups,
    const OptimizerFactory& make,
    int64_t overlap_chunk_bytes);

} // namespace tandem::detail
