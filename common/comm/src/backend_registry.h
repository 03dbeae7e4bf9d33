#pragma once

#include <map>

#include <tandem/comm/backend.h>

namespace tandem::comm {

/// The factories of a group whose models live on `device`: the CPU's always,
/// CUDA's where `device` is one, and whatever was registered.
/// **Throws** `ConfigError` if `device` is CUDA and NCCL was not built in.
std::map<at::DeviceType, BackendFactory> backends_for(at::Device device);

} // namespace tandem::comm
