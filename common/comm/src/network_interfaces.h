#pragma once

#include <string>
#include <vector>

#include <tandem/comm/env_reader.h>

namespace tandem::comm {

/// The network interfaces that Gloo is to use: those that TANDEM_SOCKET_IFNAME
/// names, or else GLOO_SOCKET_IFNAME, separated by commas. Empty if neither is
/// set or the one that counts is empty.
/// **Throws** `ConfigError` naming the variable, the name that is no interface
/// with an address of this host, and those that are.
std::vector<std::string> chosen_interfaces(const EnvLookup& lookup);

} // namespace tandem::comm
