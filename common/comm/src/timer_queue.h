#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace tandem::comm {

/// Actions that are due at some time, for the thread that calls `run_due`.
/// What is pending when the queue is destroyed is never run.
///
/// **Threads**: any; actions run in the thread of `run_due`, and may call the
/// queue.
class TimerQueue {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Clock = std::function<Time()>;

  explicit TimerQueue(Clock clock = std::chrono::steady_clock::now);

  /// Has `action` run once `delay` is over. Returns its number, from 1.
  int64_t arm(std::chrono::milliseconds delay, std::function<void()> action);
  /// False if it has been run or cancelled before.
  bool cancel(int64_t number);
  /// Runs what is due, in the order of its times. Returns how long it is until
  /// the next, rounded up; nothing if none is pending.
  std::optional<std::chrono::milliseconds> run_due();

 private:
  struct Timer {
    int64_t number;
    std::function<void()> action;
  };

  std::optional<Timer> take_due();

  Clock clock_;
  std::mutex mutex_;
  /// By time, those of one time in the order in which they were armed.
  std::multimap<Time, Timer> timers_;
  int64_t last_number_ = 0;
};

} // namespace tandem::comm
