#include "rank_board.h"

#include <algorithm>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::testing::detail {

RankBoard::RankBoard(int64_t world_size)
    : entries_(static_cast<size_t>(world_size)) {}

int64_t RankBoard::world_size() const {
  return static_cast<int64_t>(entries_.size());
}

void RankBoard::note_doing(int64_t rank, std::string what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.at(static_cast<size_t>(rank)).doing = std::move(what);
}

void RankBoard::note_end(int64_t rank, std::exception_ptr error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error && !first_to_fail_) {
    first_to_fail_ = rank;
  }
  auto& entry = entries_.at(static_cast<size_t>(rank));
  entry.ended = true;
  entry.error = std::move(error);
  ended_.notify_all();
}

bool RankBoard::wait_for_all(std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return ended_.wait_for(lock, limit, [&] {
    return std::all_of(entries_.begin(), entries_.end(), [](const auto& entry) {
      return entry.ended;
    });
  });
}

std::vector<std::exception_ptr> RankBoard::errors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::exception_ptr> errors;
  for (const auto& entry : entries_) {
    errors.push_back(entry.error);
  }
  return errors;
}

std::optional<int64_t> RankBoard::first_to_fail() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return first_to_fail_;
}

std::string RankBoard::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (size_t rank = 0; rank < entries_.size(); ++rank) {
    const auto& entry = entries_[rank];
    const auto state = !entry.ended ? "was in: " + entry.doing
        : entry.error               ? "failed: " + message_of(entry.error)
                                    : std::string("ended");
    text += fmt::format("  rank {} {}\n", rank, state);
  }
  return text;
}

} // namespace tandem::testing::detail
