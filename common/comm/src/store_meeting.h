#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// 0, 1, ... `size` - 1.
std::vector<int64_t> all_ranks(int64_t size);

/// `ranks` without `left_out`; both ascending.
std::vector<int64_t> ranks_without(
    const std::vector<int64_t>& ranks,
    const std::vector<int64_t>& left_out);

/// Waits, with pauses that grow, until `key` is there; false at `limit`: c10d's
/// own wait complains on stderr when its time is over.
bool await_key(
    c10d::Store& store,
    const std::string& key,
    std::chrono::milliseconds limit);

/// A meeting of some ranks in a store: each leaves a value, and each may wait
/// until all have. Waiting polls, with pauses that grow, one key that whoever
/// comes last sets: c10d's own wait complains on stderr when its time is over.
///
/// All functions throw `c10::DistNetworkError` if the store is lost.
class StoreMeeting {
 public:
  /// `name` is the same on all of `ranks` and not used before.
  StoreMeeting(
      c10d::Store& store,
      std::string name,
      std::vector<int64_t> ranks);

  void arrive(int64_t rank, const std::string& value = "1");

  /// How a wait ended: all had come if both are empty.
  struct Outcome {
    /// Ranks that had not come.
    std::vector<int64_t> missing;
    /// Value of the alarm key, if that ended the wait.
    std::optional<std::string> alarm;
  };
  /// Waits until all have come, `limit` is over, or the key `alarm_key` (none
  /// if empty) has been set.
  Outcome await(
      std::chrono::milliseconds limit,
      const std::string& alarm_key = "");

  /// What `rank`, which has come, left.
  std::string value_of(int64_t rank);
  /// Removes what the meeting left in the store, when nobody looks at it any
  /// more.
  void erase();
  /// What all, who have come, left, in the order of the ranks.
  std::vector<std::string> values();

 private:
  std::string key_of(int64_t rank) const;
  std::string count_key() const;
  std::string complete_key() const;

  c10d::Store& store_;
  std::string name_;
  std::vector<int64_t> ranks_;
};

/// To be called by each of `ranks` that has read all it needs of something that
/// ends in an error: rank 0, which may host the store and may exit on the
/// error, waits up to a second for the others. **Throws** nothing.
void leave_in_order(
    c10d::Store& store,
    const std::string& name,
    int64_t rank,
    const std::vector<int64_t>& ranks) noexcept;

} // namespace tandem::comm
