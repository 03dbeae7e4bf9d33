#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// Where `rank` leaves its mark for the meeting called `name`.
std::string mark_key(const std::string& name, int64_t rank);

/// 0, 1, ... `size` - 1.
std::vector<int64_t> all_ranks(int64_t size);

/// `ranks` without `left_out`; both ascending.
std::vector<int64_t> ranks_without(
    const std::vector<int64_t>& ranks,
    const std::vector<int64_t>& left_out);

/// Outcome of waiting for marks.
struct Meeting {
  /// Ranks without a mark when the wait ended, ascending.
  std::vector<int64_t> missing;
  /// Value of the alarm key, if that ended the wait.
  std::optional<std::string> alarm;
};

/// Waits until each of `ranks` has left its mark, `limit` is over, or the key
/// `alarm_key` (none if empty) has been set.
/// **Throws** `c10::DistNetworkError` if the store is lost.
Meeting await_marks(
    c10d::Store& store,
    const std::string& name,
    const std::vector<int64_t>& ranks,
    std::chrono::milliseconds limit,
    const std::string& alarm_key = "");

/// To be called by each rank that has read all it needs of a meeting that ends
/// in an error: rank 0, which may host the store and may exit on the error,
/// waits up to a second for the rest of `ranks`. **Throws** nothing.
void leave_meeting(
    c10d::Store& store,
    const std::string& name,
    int64_t rank,
    const std::vector<int64_t>& ranks) noexcept;

} // namespace tandem::comm
