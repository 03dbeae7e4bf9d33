#include "placement/sim_devices.h"

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/sim/environment.h>

namespace tandem::bench {

std::optional<int64_t> requested_sim_devices() {
  const auto devices = sim::options_from_environment({.devices = 0}).devices;
  return devices == 0 ? std::nullopt : std::make_optional(devices);
}

void start_sim_devices(int64_t workers, sim::Options options) {
  options.devices = workers;
  options = sim::options_from_environment(options);
  if (options.devices < workers) {
    throw ConfigError(fmt::format(
        "TANDEM_SIM_DEVICES: expected at least {}, one per worker of this "
        "host, got {}",
        workers,
        options.devices));
  }
  sim::init(options);
}

} // namespace tandem::bench
