#include "flight_monitor.h"

#include <csignal>
#include <cstdint>

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

/// Waits until the descriptor is readable, and takes what is in it.
void await_event() {
  pollfd event{FlightSignal::descriptor(), POLLIN, 0};
  ::poll(&event, 1, -1);
  uint64_t count = 0;
  [[maybe_unused]] const auto taken = ::read(event.fd, &count, sizeof count);
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
  while (true) {
    await_event();
    if (is_over_) {
      return;
    }
    write_all();
  }
}

void FlightMonitor::write_all() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& weak : logs_) {
    if (const auto log = weak.lock()) {
      log->write_as_asked();
    }
  }
}

} // namespace tandem::comm
