#include <tandem/comm/sub_group.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <tandem/comm/backend.h>
#include <tandem/comm/comm.h>
#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

/// `ranks` are ascending.
void check_members(
    const ProcessGroup& parent,
    const std::vector<int64_t>& ranks) {
  const bool valid = !ranks.empty() && ranks.front() >= 0 &&
      ranks.back() < parent.size() &&
      std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
  if (!valid) {
    throw ConfigError(fmt::format(
        "{} ranks: expected different ones from 0 to {}, at least one, got "
        "[{}]",
        rank_tag("comm", parent.rank(), parent.size()),
        parent.size() - 1,
        fmt::join(ranks, ", ")));
  }
}

} // namespace

std::shared_ptr<ProcessGroup> new_group(
    ProcessGroup& parent,
    std::vector<int64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  check_members(parent, ranks);
  // On all ranks, so that those who are no members count on.
  const auto number = parent.next_sequence();
  const auto own = std::find(ranks.begin(), ranks.end(), parent.rank());
  if (own == ranks.end()) {
    return nullptr;
  }
  return connect_group(
      {.store = c10::make_intrusive<c10d::PrefixStore>(
           fmt::format("sub/{}", number),
           parent.store()),
       .rank = own - ranks.begin(),
       .size = static_cast<int64_t>(ranks.size()),
       .device = parent.device(),
       .timeout = parent.timeout(),
       .startup_timeout = parent.startup_timeout(),
       .one_host = false});
}

std::shared_ptr<ProcessGroup> new_group(std::vector<int64_t> ranks) {
  return new_group(*default_group(), std::move(ranks));
}

} // namespace tandem::comm
