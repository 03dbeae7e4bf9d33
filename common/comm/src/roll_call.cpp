#include "roll_call.h"

#include "store_meeting.h"

namespace tandem::comm {

namespace {

constexpr std::chrono::seconds kRollCallLimit{1};
constexpr const char* kMeetingName = "roll_call";
constexpr const char* kBeganKey = "roll_call/began";
constexpr const char* kTimedOut = "timed out";

} // namespace

RollCall::RollCall(c10d::Store& store, int64_t rank, int64_t size)
    : store_(store), rank_(rank), ranks_(all_ranks(size)) {}

void RollCall::answer(bool timed_out) noexcept {
  try {
    StoreMeeting(store_, kMeetingName, ranks_)
        .arrive(rank_, timed_out ? kTimedOut : "failed");
    store_.set(kBeganKey, "1");
  } catch (const std::exception&) {
    return; // `take` finds the store lost and says so
  }
}

bool RollCall::began() noexcept {
  try {
    return store_.check({kBeganKey});
  } catch (const std::exception&) {
    return true;
  }
}

RollCallResult RollCall::take() noexcept {
  RollCallResult result;
  try {
    StoreMeeting meeting(store_, kMeetingName, ranks_);
    result.missing = meeting.await(kRollCallLimit).missing;
    const auto present = ranks_without(ranks_, result.missing);
    for (const auto rank : present) {
      result.timed_out |= meeting.value_of(rank) == kTimedOut;
    }
    leave_in_order(store_, kMeetingName, rank_, present);
  } catch (const std::exception&) {
    result.store_lost = true;
  }
  return result;
}

} // namespace tandem::comm
