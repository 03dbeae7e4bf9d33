#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "doctor/finding.h"
#include "placement/sim_devices.h"

namespace tandem::bench {

Finding sim_finding() {
  const std::string subject = "sim";
  try {
    const auto devices = requested_sim_devices();
    return {
        Verdict::kOk,
        subject,
        devices ? fmt::format(
                      "--device sim makes {} simulated devices, as "
                      "TANDEM_SIM_DEVICES says",
                      *devices)
                : "--device sim makes a simulated device for each worker; "
                  "TANDEM_SIM_DEVICES is not set"};
  } catch (const ConfigError& error) {
    return {
        Verdict::kBroken,
        subject,
        error.what_without_backtrace(),
        "unset the variable, or give it a number of devices"};
  }
}

} // namespace tandem::bench
