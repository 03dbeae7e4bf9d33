#pragma once

#include <string>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

/// "SIGKILL".
std::string signal_name(int signal);

/// What ended the ranks, in lines that each begin with "[name] "; empty if all
/// succeeded without an interrupt.
std::string report(const LaunchResult& result, const std::string& name);

} // namespace tandem::comm::launch
