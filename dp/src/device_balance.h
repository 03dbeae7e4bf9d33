#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace tandem::detail {

/// How large and how fast a device is; absent where it cannot be known.
struct DeviceSize {
  at::Device device;
  std::optional<int64_t> memory_bytes;
  std::optional<int64_t> multiprocessors;
};

DeviceSize device_size(at::Device device);

/// Says which device has less than three quarters of another one's memory or
/// multiprocessors, and so holds all of them back; nothing if none has.
/// **Source**: the rule of Python's DataParallel.
std::optional<std::string> find_imbalance(const std::vector<DeviceSize>& sizes);

/// Warns if the devices are very unequal.
void warn_of_imbalance(const std::vector<at::Device>& devices);

} // namespace tandem::detail
