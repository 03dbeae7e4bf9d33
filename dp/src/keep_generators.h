#pragma once

#include <functional>
#include <vector>

#include <c10/core/Device.h>

namespace tandem::detail {

/// Runs `body` and then gives the default generators of the CPU and of
/// `devices` back the state they had, also if `body` throws. (Making a module
/// draws random numbers for its parameters.)
void keep_generators(
    const std::vector<at::Device>& devices,
    const std::function<void()>& body);

} // namespace tandem::detail
