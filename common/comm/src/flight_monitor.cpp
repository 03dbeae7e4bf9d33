#include "flight_monitor.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace tandem::comm {

namespace {

std::mutex monitor_mutex;
std::weak_ptr<FlightMonitor> process_monitor;

/// Keeps all signals from the threads that are started while it lives.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~AllSignalsBlocked() {
    pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
  }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t previous_{};
};

constexpr std::chrono::milliseconds kLookInterval = std::chrono::seconds(1);

/// Waits until the descriptor is readable, and takes what is in it. False if it
/// is not within `limit`; nothing: without a limit.
bool await_event(std::optional<std::chrono::milliseconds> limit) {
  pollfd event{FlightSignal::descriptor(), POLLIN, 0};
  if (::poll(&event, 1, limit ? static_cast<int>(limit->count()) : -1) <= 0) {
    return false;
  }
  uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(event.fd, &count, sizeof count);
  return true;
}

void make_event() {
  const uint64_t one = 1;
  [[maybe_unused]] const auto written =
      ::write(FlightSignal::descriptor(), &one, sizeof one);
}

} // namespace

std::shared_ptr<FlightMonitor> FlightMonitor::shared() {
  const std::lock_guard<std::mutex> lock(monitor_mutex);
  auto monitor = process_monitor.lock();
  if (!monitor) {
    monitor = std::make_shared<FlightMonitor>();
    process_monitor = monitor;
  }
  return monitor;
}

FlightMonitor::FlightMonitor() {
  const AllSignalsBlocked guard;
  thread_ = std::thread([this] { watch(); });
}

FlightMonitor::~FlightMonitor() {
  is_over_ = true;
  make_event();
  thread_.join();
}

void FlightMonitor::add(const std::shared_ptr<FlightLog>& log) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(logs_, [](const auto& weak) { return weak.expired(); });
  logs_.push_back(log);
}

void FlightMonitor::watch() {
  look_again();
  while (true) {
    const bool is_signalled = await_event(timers_.run_due());
    if (is_over_) {
      return;
    }
    if (is_signalled) {
      for (const auto& log : logs()) {
        log->write_as_asked();
      }
    }
  }
}

/// Looks for failures of other ranks, now and every second.
void FlightMonitor::look_again() {
  for (const auto& log : logs()) {
    if (is_over_) {
      return;
    }
    log->look_for_failure();
  }
  timers_.arm(kLookInterval, [this] { look_again(); });
}

std::vector<std::shared_ptr<FlightLog>> FlightMonitor::logs() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<FlightLog>> alive;
  for (const auto& weak : logs_) {
    if (auto log = weak.lock()) {
      alive.push_back(std::move(log));
    }
  }
  return alive;
}

} // namespace tandem::comm
