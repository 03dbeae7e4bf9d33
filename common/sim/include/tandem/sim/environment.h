#pragma once

#include <tandem/sim/sim.h>

namespace tandem::sim {

/// `defaults` with what the environment sets, for programs that let their user
/// choose:
/// - TANDEM_SIM_DEVICES: `Options::devices`, 1 to `kMaxDevices`
/// - TANDEM_SIM_CAPACITY_BYTES: `Options::capacity_bytes`, 0 or more
/// - TANDEM_SIM_HAZARD_CHECKS: `Options::hazard_checks`, 0 or 1
///
/// Initialises nothing. **Throws** `ConfigError` naming the variable, its value
/// and the rule.
///
/// Example: `sim::init(sim::options_from_environment({.devices = 2}));`
Options options_from_environment(Options defaults = {});

} // namespace tandem::sim
