#pragma once

#include <cstdint>
#include <optional>

#include <tandem/sim/sim.h>

namespace tandem::bench {

/// How many simulated devices TANDEM_SIM_DEVICES asks for, if it is set.
/// **Throws** `ConfigError` naming the variable if it is no such number.
std::optional<int64_t> requested_sim_devices();

/// Makes the simulated devices of this process: as many as TANDEM_SIM_DEVICES
/// says, else one for each of `workers`. To be called before anything trains.
/// **Throws** as `sim::init`.
void start_sim_devices(int64_t workers, sim::Options options);

} // namespace tandem::bench
