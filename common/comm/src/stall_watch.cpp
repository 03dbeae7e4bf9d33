#include "stall_watch.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>

#include "bounded_call.h"
#include "text.h"

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;

constexpr int kLooksPerLimit = 10;
// How many intervals the others have to say that they wait too.
constexpr int kGraceIntervals = 2;
constexpr std::chrono::milliseconds kStoreLimit = 500ms;

std::string waiting_key(const std::string& key, int64_t rank) {
  return fmt::format("stall/{}/{}", key, rank);
}

/// Says that this rank waits, if one waits for long.
void take_part(const StallWatch::Wait& wait, bool is_stalled) {
  const auto began_key = fmt::format("stall/{}/began", wait.key);
  if (is_stalled || wait.store->check({began_key})) {
    wait.store->set(waiting_key(wait.key, wait.rank), "1");
    wait.store->set(began_key, "1");
  }
}

std::vector<int64_t> silent_ranks(const StallWatch::Wait& wait) {
  std::vector<int64_t> silent;
  for (int64_t rank = 0; rank < wait.size; ++rank) {
    if (!wait.store->check({waiting_key(wait.key, rank)})) {
      silent.push_back(rank);
    }
  }
  return silent;
}

/// Whether no rank below `rank` waits.
bool is_first_waiting(int64_t rank, const std::vector<int64_t>& silent) {
  return std::count_if(silent.begin(), silent.end(), [&](int64_t other) {
           return other < rank;
         }) == rank;
}

} // namespace

std::chrono::milliseconds StallWatch::interval() const {
  return std::max(limit_ / kLooksPerLimit, 1ms);
}

std::string StallWatch::look(const Wait& wait) noexcept {
  try {
    const bool is_stalled = wait.waited >= limit_;
    const bool is_due = wait.waited >= limit_ + kGraceIntervals * interval();
    auto silent = std::make_shared<std::vector<int64_t>>();
    const bool answered =
        returns_within(kStoreLimit, [wait, is_stalled, is_due, silent] {
          take_part(wait, is_stalled);
          if (is_due) {
            *silent = silent_ranks(wait);
          }
        });
    if (answered && !is_due) {
      return "";
    }
    const auto limit = format_limit(std::exchange(limit_, 0ms));
    if (!answered) {
      return "expected the store, which rank 0 or the launcher hosts, to "
             "answer, got nothing";
    }
    if (!is_first_waiting(wait.rank, *silent)) {
      return "";
    }
    return fmt::format(
        "expected every rank within {}, {}",
        limit,
        silent->empty() ? "all have come, but it goes on"
                        : "still no sign of " + list_ranks(*silent));
  } catch (const std::exception&) {
    return "";
  }
}

} // namespace tandem::comm
