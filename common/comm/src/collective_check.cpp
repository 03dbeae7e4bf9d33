#include "collective_check.h"

#include <map>

#include <fmt/format.h>

#include "ranks_by_text.h"
#include "roll_call.h"
#include "store_meeting.h"
#include "text.h"

namespace tandem::comm {

namespace {

std::string meeting_name(int64_t sequence) {
  return fmt::format("compared/{}", sequence);
}

std::string describe_mismatch(
    int64_t sequence,
    const std::vector<std::string>& calls) {
  std::map<int64_t, std::string> call_by_rank;
  for (size_t rank = 0; rank < calls.size(); ++rank) {
    call_by_rank.emplace(static_cast<int64_t>(rank), calls[rank]);
  }
  const auto groups = ranks_by_text(call_by_rank);
  if (groups.size() == 1) {
    return "";
  }
  auto text = fmt::format(
      "collective {}: expected {} as on {}, got ",
      sequence,
      groups.front().text,
      list_some_ranks(groups.front().ranks));
  for (size_t i = 1; i < groups.size(); ++i) {
    text += fmt::format(
        "{}{} on {}",
        i == 1 ? "" : ", ",
        groups[i].text,
        list_some_ranks(groups[i].ranks));
  }
  return text;
}

} // namespace

ComparisonOutcome compare_calls(const ComparedCall& call) {
  const auto ranks = all_ranks(call.size);
  StoreMeeting meeting(*call.store, meeting_name(call.sequence), ranks);
  meeting.arrive(call.rank, call.call);
  const auto outcome = meeting.await(call.limit, kRollCallBeganKey);
  if (outcome.alarm) {
    return {"", "another rank reported a failure"};
  }
  if (!outcome.missing.empty()) {
    return {"", "timed out after " + format_limit(call.limit)};
  }
  const auto difference = describe_mismatch(call.sequence, meeting.values());
  // All have come here, so nobody looks at the comparison before any more.
  if (call.rank == 0 && call.sequence > 1) {
    StoreMeeting(*call.store, meeting_name(call.sequence - 1), ranks).erase();
  }
  return {difference, ""};
}

} // namespace tandem::comm
