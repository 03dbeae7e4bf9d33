#pragma once

#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <tandem/dp/data_parallel_options.h>

namespace tandem::detail {

/// Makes a replica of `base` for each device but the first, by `factory` or, if
/// it is empty, by `clone(device)`; returns `base` and these. Leaves the random
/// generators as they were.
/// **Throws** `ConfigError` if a replica cannot be made, or its module tree has
/// other names or types, or modules or tensors in common with `base` or another
/// replica.
std::vector<std::shared_ptr<torch::nn::Module>> make_replicas(
    const std::shared_ptr<torch::nn::Module>& base,
    const std::vector<at::Device>& devices,
    const ReplicaFactory& factory);

} // namespace tandem::detail
