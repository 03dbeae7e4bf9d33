#include "network_interfaces.h"

#include <memory>
#include <set>
#include <sstream>

#include <ifaddrs.h>
#include <sys/socket.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem::comm {

namespace {

/// Those that have an address.
std::set<std::string> interface_names() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    return {};
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(
      first,
      &freeifaddrs);
  std::set<std::string> names;
  for (const auto* next = first; next != nullptr; next = next->ifa_next) {
    const auto* const address = next->ifa_addr;
    if (address != nullptr &&
        (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
      names.emplace(next->ifa_name);
    }
  }
  return names;
}

} // namespace

std::vector<std::string> chosen_interfaces(const EnvLookup& lookup) {
  const EnvReader reader(lookup);
  const std::string variable = reader.has("TANDEM_SOCKET_IFNAME")
      ? "TANDEM_SOCKET_IFNAME"
      : "GLOO_SOCKET_IFNAME";
  std::istringstream list(lookup(variable).value_or(""));
  const auto present = interface_names();
  std::vector<std::string> chosen;
  for (std::string name; std::getline(list, name, ',');) {
    if (!present.contains(name)) {
      reader.reject(
          variable,
          fmt::format(
              "network interfaces of this host ({}) separated by commas",
              fmt::join(present, ", ")));
    }
    chosen.push_back(name);
  }
  return chosen;
}

} // namespace tandem::comm
