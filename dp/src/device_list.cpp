#include "device_list.h"

#include <algorithm>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::detail {

namespace {

int64_t count_devices(at::DeviceType type) {
  return c10::impl::hasDeviceGuardImpl(type)
      ? c10::impl::VirtualGuardImpl(type).deviceCount()
      : 0;
}

std::vector<at::Device> all_cuda_devices() {
  std::vector<at::Device> devices;
  for (int64_t index = 0; index < count_devices(at::kCUDA); ++index) {
    devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(index));
  }
  if (devices.empty()) {
    throw ConfigError(
        "DataParallel: devices: expected a list, since there is no CUDA device "
        "to default to, got none. Pass DataParallelOptions().devices({...}); "
        "{torch::kCPU, torch::kCPU} runs two replicas without a GPU");
  }
  return devices;
}

std::vector<at::Device> listed_devices(const DataParallelOptions& options) {
  if (options.devices() && options.device_ids()) {
    throw ConfigError(
        "DataParallel: devices: expected either devices or device_ids, got "
        "both. device_ids is short for devices with CUDA indices");
  }
  if (options.devices()) {
    return *options.devices();
  }
  std::vector<at::Device> devices;
  for (const int64_t index : *options.device_ids()) {
    if (index < 0 || index >= count_devices(at::kCUDA)) {
      throw ConfigError(fmt::format(
          "DataParallel: device_ids: expected indices below {}, the number of "
          "CUDA devices, got {}",
          count_devices(at::kCUDA),
          index));
    }
    devices.emplace_back(at::kCUDA, static_cast<at::DeviceIndex>(index));
  }
  return devices;
}

void check_exists(at::Device device, const char* option) {
  const int64_t count = count_devices(device.type());
  if (!device.is_cpu() && (device.index() >= count || count == 0)) {
    throw ConfigError(fmt::format(
        "DataParallel: {}: expected a device of this machine, which has {} of "
        "type {}, got {}",
        option,
        count,
        c10::DeviceTypeName(device.type(), /*lower_case=*/true),
        device.str()));
  }
}

void check_list(const std::vector<at::Device>& devices, bool allow_duplicates) {
  for (auto device = devices.begin(); device != devices.end(); ++device) {
    if (device->type() != devices.front().type()) {
      throw ConfigError(fmt::format(
          "DataParallel: devices: expected devices of one type, got {} and {}",
          devices.front().str(),
          device->str()));
    }
    if (!device->is_cpu() && !allow_duplicates &&
        std::find(devices.begin(), device, *device) != device) {
      throw ConfigError(fmt::format(
          "DataParallel: devices: expected each device once, got {} twice. "
          "allow_duplicate_devices(true) allows it",
          device->str()));
    }
  }
}

} // namespace

at::Device with_index(at::Device device) {
  if (device.is_cpu()) {
    return at::kCPU;
  }
  if (device.has_index()) {
    return device;
  }
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

std::vector<at::Device> resolve_devices(const DataParallelOptions& options) {
  if (!options.devices() && !options.device_ids()) {
    return all_cuda_devices();
  }
  auto devices = listed_devices(options);
  if (devices.empty()) {
    throw ConfigError(
        "DataParallel: devices: expected at least one, got an empty list. "
        "Leave it out to use all CUDA devices");
  }
  for (auto& device : devices) {
    check_exists(device, "devices");
    device = with_index(device);
  }
  check_list(devices, options.allow_duplicate_devices());
  return devices;
}

at::Device resolve_output_device(
    const DataParallelOptions& options,
    at::Device first) {
  const auto device = options.output_device().value_or(first);
  check_exists(device, "output_device");
  return with_index(device);
}

} // namespace tandem::detail
