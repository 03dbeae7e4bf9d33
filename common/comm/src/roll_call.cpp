#include "roll_call.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "bounded_call.h"
#include "ranks_by_text.h"
#include "store_meeting.h"

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kRollCallLimit = 1s;
// Each beyond what the calls in it may take.
constexpr std::chrono::milliseconds kAnswerLimit = 500ms;
constexpr std::chrono::milliseconds kTakeLimit = 2500ms;
constexpr const char* kMeetingName = "roll_call";
constexpr char kTimedOut = 't';
constexpr char kFailed = 'f';
constexpr size_t kPlacesInMessage = 4;

} // namespace

std::string describe_positions(
    const std::map<int64_t, std::string>& positions) {
  const auto places = ranks_by_text(positions);
  std::string text;
  for (size_t i = 0; i < std::min(places.size(), kPlacesInMessage); ++i) {
    const auto& [place, ranks] = places[i];
    text += fmt::format(
        "{} {} {} at {}",
        i == 0 ? ". At that time" : ";",
        list_some_ranks(ranks),
        ranks.size() == 1 ? "was" : "were",
        place);
  }
  return text;
}

RollCall::RollCall(
    c10::intrusive_ptr<c10d::Store> store,
    int64_t rank,
    int64_t size)
    : store_(std::move(store)), rank_(rank), ranks_(all_ranks(size)) {}

void RollCall::answer(bool timed_out, const std::string& position) noexcept {
  is_store_lost_ = !returns_within(
      kAnswerLimit,
      [store = store_,
       rank = rank_,
       ranks = ranks_,
       value = (timed_out ? kTimedOut : kFailed) + position] {
        StoreMeeting(*store, kMeetingName, ranks).arrive(rank, value);
        store->set(kRollCallBeganKey, "1");
      });
}

bool RollCall::began() noexcept {
  auto found = std::make_shared<bool>(false);
  const bool answered = returns_within(kAnswerLimit, [store = store_, found] {
    *found = store->check({kRollCallBeganKey});
  });
  return !answered || *found;
}

RollCallResult RollCall::take() noexcept {
  RollCallResult lost;
  lost.store_lost = true;
  if (is_store_lost_) {
    return lost;
  }
  auto result = std::make_shared<RollCallResult>();
  const bool answered = returns_within(
      kTakeLimit,
      [store = store_, rank = rank_, ranks = ranks_, result] {
        StoreMeeting meeting(*store, kMeetingName, ranks);
        result->missing = meeting.await(kRollCallLimit).missing;
        const auto present = ranks_without(ranks, result->missing);
        for (const auto other : present) {
          const auto value = meeting.value_of(other);
          result->timed_out |= value.starts_with(kTimedOut);
          result->positions[other] = value.substr(1);
        }
        leave_in_order(*store, kMeetingName, rank, present);
      });
  return answered ? *result : lost;
}

} // namespace tandem::comm
