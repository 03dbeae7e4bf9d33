#pragma once

#include <memory>
#include <vector>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <tandem/dp/memory_report.h>

#include "forward_memory.h"

namespace tandem::detail {

/// What `replicas`, on `devices`, hold now. `optimizer` may be null.
MemoryReport measure_memory(
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas,
    const std::vector<at::Device>& devices,
    at::Device output_device,
    const ForwardMemory& forward,
    const torch::optim::Optimizer* optimizer);

} // namespace tandem::detail
