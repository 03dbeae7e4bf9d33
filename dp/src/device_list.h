#pragma once

#include <vector>

#include <c10/core/Device.h>

#include <tandem/dp/data_parallel_options.h>

namespace tandem::detail {

/// The devices that the options name, or all CUDA devices; each with its index,
/// the CPU without.
/// **Throws** `ConfigError` if there are none, or one does not exist, is of
/// another type than the first, or appears twice.
std::vector<at::Device> resolve_devices(const DataParallelOptions& options);

/// Where outputs go: the option, or `first`.
/// **Throws** `ConfigError` if that device does not exist.
at::Device resolve_output_device(
    const DataParallelOptions& options,
    at::Device first);

/// `device` with the index that it means: none for the CPU, the current one for
/// others without an index.
at::Device with_index(at::Device device);

} // namespace tandem::detail
