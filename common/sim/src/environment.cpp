#include <tandem/sim/environment.h>

#include <limits>

#include <fmt/format.h>

#include <tandem/comm/env_reader.h>

namespace tandem::sim {

namespace {

constexpr const char* kDevicesVariable = "TANDEM_SIM_DEVICES";
constexpr const char* kCapacityVariable = "TANDEM_SIM_CAPACITY_BYTES";
constexpr const char* kHazardsVariable = "TANDEM_SIM_HAZARD_CHECKS";

} // namespace

Options options_from_environment(Options defaults) {
  const comm::EnvLookup lookup = comm::process_env;
  const comm::EnvReader reader(lookup);
  if (reader.has(kDevicesVariable)) {
    defaults.devices = reader.number(
        kDevicesVariable,
        1,
        kMaxDevices,
        fmt::format(
            "the number of simulated devices, decimal digits from 1 to {}",
            kMaxDevices));
  }
  if (reader.has(kCapacityVariable)) {
    defaults.capacity_bytes = reader.number(
        kCapacityVariable,
        0,
        std::numeric_limits<int64_t>::max(),
        "the bytes of each simulated device, decimal digits from 0 (no limit)");
  }
  if (reader.has(kHazardsVariable)) {
    defaults.hazard_checks =
        reader.number(kHazardsVariable, 0, 1, "0 or 1 (check for hazards)") ==
        1;
  }
  return defaults;
}

} // namespace tandem::sim
