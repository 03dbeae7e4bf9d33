#include "device_balance.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <tandem/core/allocated_memory.h>

#include "multiprocessors.h"

namespace tandem::detail {

namespace {

/// The smallest part of the largest device's that is still no imbalance.
constexpr double kLeastRatio = 0.75;

std::optional<std::string> find_imbalance_of(
    const std::vector<DeviceSize>& sizes,
    std::optional<int64_t> DeviceSize::*quantity,
    const char* name) {
  const auto is_known = [&](const DeviceSize& size) {
    return (size.*quantity).has_value();
  };
  if (sizes.empty() || !std::all_of(sizes.begin(), sizes.end(), is_known)) {
    return std::nullopt;
  }
  const auto [least, most] = std::minmax_element(
      sizes.begin(),
      sizes.end(),
      [&](const DeviceSize& a, const DeviceSize& b) {
        return *(a.*quantity) < *(b.*quantity);
      });
  const auto least_value = static_cast<double>(*((*least).*quantity));
  const auto most_value = static_cast<double>(*((*most).*quantity));
  if (least_value >= kLeastRatio * most_value) {
    return std::nullopt;
  }
  return fmt::format(
      "DataParallel: devices: expected alike ones, got {}, which has {:.0f} % "
      "of the {} of {}. All wait for the least of them: consider leaving it "
      "out of devices",
      least->device.str(),
      100 * least_value / most_value,
      name,
      most->device.str());
}

} // namespace

DeviceSize device_size(at::Device device) {
  return {device, total_memory_bytes(device), num_multiprocessors(device)};
}

std::optional<std::string> find_imbalance(
    const std::vector<DeviceSize>& sizes) {
  const auto memory =
      find_imbalance_of(sizes, &DeviceSize::memory_bytes, "memory");
  return memory ? memory
                : find_imbalance_of(
                      sizes,
                      &DeviceSize::multiprocessors,
                      "multiprocessors");
}

void warn_of_imbalance(const std::vector<at::Device>& devices) {
  std::vector<DeviceSize> sizes;
  sizes.reserve(devices.size());
  for (const auto& device : devices) {
    sizes.push_back(device_size(device));
  }
  if (const auto imbalance = find_imbalance(sizes)) {
    TORCH_WARN(*imbalance);
  }
}

} // namespace tandem::detail
