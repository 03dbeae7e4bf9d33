#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tandem::testing::detail {

/// Where ranks say what they do and how they ended.
/// **Threads**: all functions may be called from any thread.
class RankBoard {
 public:
  explicit RankBoard(int64_t world_size);

  int64_t world_size() const;
  void note_doing(int64_t rank, std::string what);
  /// `error` is null if the rank ended well.
  void note_end(int64_t rank, std::exception_ptr error);

  /// False if some rank has not ended within `limit`.
  bool wait_for_all(std::chrono::milliseconds limit);
  /// Each rank's error, null if it had none.
  std::vector<std::exception_ptr> errors() const;
  std::optional<int64_t> first_to_fail() const;
  /// A line for each rank: what it was doing last, or how it ended.
  std::string describe() const;

 private:
  struct Entry {
    std::string doing = "nothing yet";
    bool ended = false;
    std::exception_ptr error;
  };

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<Entry> entries_;
  std::optional<int64_t> first_to_fail_;
};

} // namespace tandem::testing::detail
