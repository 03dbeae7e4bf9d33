#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "flight_log.h"
#include "flight_signal.h"
#include "timer_queue.h"

namespace tandem::comm {

/// Writes this process's flight records on SIGUSR1, and when another rank has
/// told of a failure, in a thread of its own: one for all groups that have a
/// folder for them, as long as there is such a group.
class FlightMonitor {
 public:
  /// The process's, made if there is none; it lives as long as it is held.
  static std::shared_ptr<FlightMonitor> shared();

  FlightMonitor();
  ~FlightMonitor();
  FlightMonitor(const FlightMonitor&) = delete;
  FlightMonitor& operator=(const FlightMonitor&) = delete;

  void add(const std::shared_ptr<FlightLog>& log);

 private:
  void watch();
  void look_again();
  std::vector<std::shared_ptr<FlightLog>> logs();

  FlightSignal signal_;
  std::atomic<bool> is_over_ = false;
  std::mutex mutex_;
  std::vector<std::weak_ptr<FlightLog>> logs_;
  TimerQueue timers_;
  std::thread thread_;
};

} // namespace tandem::comm
