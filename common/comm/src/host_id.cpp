#include "host_id.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>

#include <unistd.h>

namespace tandem::comm {

std::string host_id() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  std::array<char, 64> network{};
  const auto length =
      readlink("/proc/self/ns/net", network.data(), network.size());
  if (boot_id.empty() || length <= 0) {
    return "";
  }
  return boot_id + std::string(network.data(), static_cast<size_t>(length));
}

bool are_on_one_host(const std::vector<std::string>& host_ids) {
  return !host_ids.empty() && !host_ids.front().empty() &&
      std::adjacent_find(
          host_ids.begin(),
          host_ids.end(),
          std::not_equal_to<>()) == host_ids.end();
}

} // namespace tandem::comm
