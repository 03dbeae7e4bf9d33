#pragma once

#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

#include "coordination.h"

namespace tandem::comm::launch {

/// "SIGKILL".
std::string signal_name(int signal);

/// The failures of one attempt, the cause first, in lines that each begin with
/// the launch's "[name] ". The cause is told last, with its error and last lines.
std::string describe(
    const std::vector<RankFailure>& failures,
    const LaunchOptions& options);

/// What ended the launch, in such lines; empty if all ranks succeeded at the
/// first attempt, without an interrupt.
std::string report(const Finish& finish, const LaunchOptions& options);

} // namespace tandem::comm::launch
