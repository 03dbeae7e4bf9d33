#include "store_meeting.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <torch/csrc/distributed/c10d/exception.h>

namespace tandem::comm {

namespace {

using Clock = std::chrono::steady_clock;

// How long a rank blocks in the store before it looks at the alarm again.
constexpr std::chrono::milliseconds kSlice{200};
constexpr std::chrono::seconds kLeaveLimit{1};

bool wait_for_keys(
    c10d::Store& store,
    const std::vector<std::string>& keys,
    std::chrono::milliseconds limit) {
  try {
    store.wait(keys, limit);
    return true;
  } catch (const c10::DistStoreError&) {
    return store.check(keys);
  }
}

} // namespace

std::string mark_key(const std::string& name, int64_t rank) {
  return name + "/" + std::to_string(rank);
}

std::vector<int64_t> all_ranks(int64_t size) {
  std::vector<int64_t> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int64_t> ranks_without(
    const std::vector<int64_t>& ranks,
    const std::vector<int64_t>& left_out) {
  std::vector<int64_t> rest;
  std::set_difference(
      ranks.begin(),
      ranks.end(),
      left_out.begin(),
      left_out.end(),
      std::back_inserter(rest));
  return rest;
}

Meeting await_marks(
    c10d::Store& store,
    const std::string& name,
    const std::vector<int64_t>& ranks,
    std::chrono::milliseconds limit,
    const std::string& alarm_key) {
  std::vector<std::string> keys;
  for (const auto rank : ranks) {
    keys.push_back(mark_key(name, rank));
  }
  const auto deadline = Clock::now() + limit;
  Meeting meeting;
  while (!keys.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Clock::now());
    // Zero would mean no limit.
    const auto slice = std::clamp(left, std::chrono::milliseconds{1}, kSlice);
    if (wait_for_keys(store, keys, slice)) {
      return meeting;
    }
    if (!alarm_key.empty() && store.check({alarm_key})) {
      meeting.alarm = store.get_to_str(alarm_key);
      break;
    }
    if (Clock::now() >= deadline) {
      break;
    }
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!store.check({keys[i]})) {
      meeting.missing.push_back(ranks[i]);
    }
  }
  return meeting;
}

void leave_meeting(
    c10d::Store& store,
    const std::string& name,
    int64_t rank,
    const std::vector<int64_t>& ranks) noexcept {
  const auto key = name + "/left";
  try {
    store.set(mark_key(key, rank), "1");
    if (rank == 0) {
      await_marks(store, key, ranks, kLeaveLimit);
    }
  } catch (const std::exception&) {
    // The store is gone: nobody can be waited for.
    return;
  }
}

} // namespace tandem::comm
