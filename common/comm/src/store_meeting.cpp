#include "store_meeting.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLeaveLimit = 1s;

// A sixteenth of what has been waited already, so that a wait is at most that
// much too long, and a store with many waiting ranks is not flooded.
std::chrono::microseconds pause_after(std::chrono::microseconds waited) {
  return std::clamp<std::chrono::microseconds>(waited / 16, 200us, 100ms);
}

} // namespace

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

bool await_key(
    c10d::Store& store,
    const std::string& key,
    std::chrono::milliseconds limit) {
  const auto begin = std::chrono::steady_clock::now();
  while (!store.check({key})) {
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin);
    if (waited >= limit) {
      return false;
    }
    std::this_thread::sleep_for(pause_after(waited));
  }
  return true;
}

StoreMeeting::StoreMeeting(
    c10d::Store& store,
    std::string name,
    std::vector<int64_t> ranks)
    : store_(store), name_(std::move(name)), ranks_(std::move(ranks)) {}

void StoreMeeting::arrive(int64_t rank, const std::string& value) {
  store_.set(key_of(rank), value);
  const auto num_arrived = store_.add(count_key(), 1);
  if (std::cmp_equal(num_arrived, ranks_.size())) {
    store_.set(complete_key(), "1");
  }
}

StoreMeeting::Outcome StoreMeeting::await(
    std::chrono::milliseconds limit,
    const std::string& alarm_key) {
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome;
  while (!store_.check({complete_key()})) {
    if (!alarm_key.empty() && store_.check({alarm_key})) {
      outcome.alarm = store_.get_to_str(alarm_key);
      return outcome;
    }
    const auto waited = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - begin);
    if (waited >= limit) {
      break;
    }
    std::this_thread::sleep_for(pause_after(waited));
  }
  std::copy_if(
      ranks_.begin(),
      ranks_.end(),
      std::back_inserter(outcome.missing),
      [this](int64_t rank) { return !store_.check({key_of(rank)}); });
  return outcome;
}

std::string StoreMeeting::value_of(int64_t rank) {
  return store_.get_to_str(key_of(rank));
}

std::vector<std::string> StoreMeeting::values() {
  std::vector<std::string> keys;
  for (const auto rank : ranks_) {
    keys.push_back(key_of(rank));
  }
  std::vector<std::string> values;
  for (const auto& bytes : store_.multiGet(keys)) {
    values.emplace_back(bytes.begin(), bytes.end());
  }
  return values;
}

void StoreMeeting::erase() {
  for (const auto rank : ranks_) {
    store_.deleteKey(key_of(rank));
  }
  store_.deleteKey(count_key());
  store_.deleteKey(complete_key());
}

std::string StoreMeeting::count_key() const {
  return name_ + "/count";
}

std::string StoreMeeting::key_of(int64_t rank) const {
  return name_ + "/" + std::to_string(rank);
}

std::string StoreMeeting::complete_key() const {
  return name_ + "/complete";
}

void leave_in_order(
    c10d::Store& store,
    const std::string& name,
    int64_t rank,
    const std::vector<int64_t>& ranks) noexcept {
  try {
    StoreMeeting leaving(store, name + "/left", ranks);
    leaving.arrive(rank);
    if (rank == 0) {
      leaving.await(kLeaveLimit);
    }
  } catch (const std::exception&) {
    return; // the store is gone: nobody can be waited for
  }
}

} // namespace tandem::comm
