#include "timer_queue.h"

#include <algorithm>

namespace tandem::comm {

TimerQueue::TimerQueue(Clock clock) : clock_(std::move(clock)) {}

int64_t TimerQueue::arm(
    std::chrono::milliseconds delay,
    std::function<void()> action) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++last_number_;
  timers_.emplace(clock_() + delay, Timer{last_number_, std::move(action)});
  return last_number_;
}

bool TimerQueue::cancel(int64_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      std::find_if(timers_.begin(), timers_.end(), [&](const auto& entry) {
        return entry.second.number == number;
      });
  if (found == timers_.end()) {
    return false;
  }
  timers_.erase(found);
  return true;
}

std::optional<std::chrono::milliseconds> TimerQueue::run_due() {
  while (const auto timer = take_due()) {
    timer->action();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timers_.empty()) {
    return std::nullopt;
  }
  return std::max(
      std::chrono::ceil<std::chrono::milliseconds>(
          timers_.begin()->first - clock_()),
      std::chrono::milliseconds(0));
}

std::optional<TimerQueue::Timer> TimerQueue::take_due() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timers_.empty() || timers_.begin()->first > clock_()) {
    return std::nullopt;
  }
  auto timer = std::move(timers_.begin()->second);
  timers_.erase(timers_.begin());
  return timer;
}

} // namespace tandem::comm
