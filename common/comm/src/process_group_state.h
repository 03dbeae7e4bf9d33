#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>

#include "collective.h"
#include "flight_log.h"
#include "flight_monitor.h"
#include "roll_call.h"
#include "stall_watch.h"

namespace tandem::comm {

/// What `ProcessGroup` hides, and how a collective starts, ends and fails.
struct ProcessGroup::State {
  using WorkPtr = c10::intrusive_ptr<c10d::Work>;

  c10::intrusive_ptr<c10d::ProcessGroup> group;
  c10::intrusive_ptr<c10d::Store> store;
  at::Device device;
  std::chrono::milliseconds timeout;
  std::chrono::milliseconds startup_timeout;
  Diagnostics diagnostics;
  int64_t rank = 0;
  int64_t size = 1;
  int64_t sequence = 0;
  std::shared_ptr<FlightLog> log = nullptr;
  /// Null without a folder for flight records.
  std::shared_ptr<FlightMonitor> monitor = nullptr;
  /// Message of the first failure; empty while there was none.
  std::string failure = "";
  StallWatch stalls{std::chrono::milliseconds(0)};

  /// To be called once, when rank and size are known.
  void open_diagnostics();

  std::string tag() const;
  /// **Throws** `ShapeError` if there is none.
  c10::intrusive_ptr<c10d::Backend> backend(at::DeviceType type) const;
  /// Fails what is in flight. **Throws** nothing.
  void abort() noexcept;
  /// What the destructor does. **Throws** nothing.
  void close() noexcept;

  /// Has the backend for the collective's device start it.
  WorkPtr start(
      const Collective& collective,
      const std::function<WorkPtr(c10d::Backend&)>& start_on);
  /// The parts of `ProcessGroup::wait` and `confirm`.
  void wait(c10d::Work& work, const std::string& what);
  void confirm(c10d::Work& work, const std::string& what);

 private:
  /// A collective that is waited for: errors call it `what`.
  struct Awaited {
    c10d::Work& work;
    const std::string& what;
    /// 0 if it is none that this group has started.
    int64_t sequence;
  };

  void wait(const Awaited& awaited);
  void wait_watched(const Awaited& awaited);
  /// Warns if the wait, which has taken so long, is a stall.
  void look_for_stall(
      const Awaited& awaited,
      std::chrono::steady_clock::time_point begin);
  /// Has all ranks compare the call, if that was asked for.
  void compare(int64_t call_sequence, const Collective& collective);
  /// Blocks until the work has completed, a peer has failed, or time is up.
  void await_completion(const Awaited& awaited);
  /// Takes the roll call (Note [Roll call]) and throws what it found.
  [[noreturn]] void fail(
      const std::string& what,
      int64_t failed_sequence,
      const std::string& cause);
  void abort_backend(at::DeviceType type);
  void check_usable(const std::string& what) const;
  std::string describe_failure(
      const std::string& what,
      const std::string& cause,
      const RollCallResult& roll_call) const;
};

} // namespace tandem::comm
