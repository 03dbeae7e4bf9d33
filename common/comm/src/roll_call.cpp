#include "roll_call.h"

#include "store_meeting.h"

namespace tandem::comm {

namespace {

constexpr std::chrono::seconds kRollCallLimit{1};
constexpr const char* kMeetingName = "roll_call";
constexpr const char* kBeganKey = "roll_call/began";
constexpr const char* kTimedOut = "timed out";

} // namespace

void answer_roll_call(
    c10d::Store& store,
    int64_t rank,
    bool timed_out) noexcept {
  try {
    store.set(mark_key(kMeetingName, rank), timed_out ? kTimedOut : "failed");
    store.set(kBeganKey, "1");
  } catch (const std::exception&) {
    // take_roll_call finds the store lost and says so.
    return;
  }
}

bool roll_call_began(c10d::Store& store) noexcept {
  try {
    return store.check({kBeganKey});
  } catch (const std::exception&) {
    return true;
  }
}

RollCall take_roll_call(
    c10d::Store& store,
    int64_t rank,
    int64_t size) noexcept {
  RollCall result;
  try {
    result.missing =
        await_marks(store, kMeetingName, all_ranks(size), kRollCallLimit)
            .missing;
    const auto present = ranks_without(all_ranks(size), result.missing);
    for (const auto peer : present) {
      result.timed_out |=
          store.get_to_str(mark_key(kMeetingName, peer)) == kTimedOut;
    }
    leave_meeting(store, kMeetingName, rank, present);
  } catch (const std::exception&) {
    result.store_lost = true;
  }
  return result;
}

} // namespace tandem::comm
