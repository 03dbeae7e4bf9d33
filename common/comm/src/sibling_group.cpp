#include <tandem/comm/sibling_group.h>

#include <array>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <tandem/comm/backend.h>

#include "store_meeting.h"

namespace tandem::comm {

namespace {

/// The same for processes that reach each other over the loopback interface.
std::string host_id() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  std::array<char, 64> network{};
  const auto length =
      readlink("/proc/self/ns/net", network.data(), network.size());
  return boot_id + std::string(network.data(), length > 0 ? length : 0);
}

bool are_on_one_host(ProcessGroup& group, c10d::Store& store) {
  StoreMeeting meeting(store, "hosts", all_ranks(group.size()));
  const auto own = host_id();
  meeting.arrive(group.rank(), own);
  if (!meeting.await(group.startup_timeout()).missing.empty()) {
    return false; // `connect_group` names those that are missing
  }
  for (const auto& host : meeting.values()) {
    if (host != own) {
      return false;
    }
  }
  return true;
}

} // namespace

std::shared_ptr<ProcessGroup> sibling_group(ProcessGroup& group) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("sibling/{}", group.next_sequence()),
      group.store());
  return connect_group(
      {.store = store,
       .rank = group.rank(),
       .size = group.size(),
       .device = group.device(),
       .timeout = group.timeout(),
       .startup_timeout = group.startup_timeout(),
       .one_host = are_on_one_host(group, *store)});
}

} // namespace tandem::comm
