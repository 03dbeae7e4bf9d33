#include <tandem/comm/monitored_barrier.h>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "store_meeting.h"
#include "text.h"

namespace tandem::comm {

void monitored_barrier(
    ProcessGroup& group,
    std::optional<std::chrono::milliseconds> limit) {
  const auto longest = limit.value_or(group.timeout());
  const auto number = group.next_sequence();
  StoreMeeting meeting(
      *group.store(),
      fmt::format("monitored-barrier/{}", number),
      all_ranks(group.size()));
  meeting.arrive(group.rank());
  const auto missing = meeting.await(longest).missing;
  if (!missing.empty()) {
    throw TimeoutError(fmt::format(
        "{} monitored barrier: expected all ranks within {}, got no sign of "
        "{}. See what they printed last",
        rank_tag("comm", group.rank(), group.size()),
        format_limit(longest),
        list_ranks(missing)));
  }
}

} // namespace tandem::comm
