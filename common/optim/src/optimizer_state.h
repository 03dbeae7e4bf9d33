#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <torch/optim/optimizer.h>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// What `torch::save` writes of an optimizer.
std::string state_to_bytes(const torch::optim::Optimizer& optimizer);
/// Reads it, tensors to `device`, into an optimizer with such groups.
void state_from_bytes(
    const std::string& bytes,
    at::Device device,
    torch::optim::Optimizer& optimizer);

/// Gives all of `from`'s state to `to`, for parameters that `to` may not have.
void move_state(torch::optim::Optimizer& from, torch::optim::Optimizer& to);

/// Moves the state of each of the optimizer's parameters to its device.
void state_to_parameters(torch::optim::Optimizer& optimizer);

/// Each rank's bytes, on rank `to`; nothing on others. `own` is not empty.
/// **Collective**.
std::vector<std::string> gather_bytes(
    comm::ProcessGroup& group,
    const std::string& own,
    int64_t to);

} // namespace tandem::detail
