#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/flight_record.h>

#include "collective.h"

namespace tandem::comm {

/// Remembers the last collectives of one rank in one group, and which of them
/// may still be in flight.
///
/// 1. Sequence numbers count the collectives that were begun, from 1.
/// 2. Keeps a work's memory until it has ended and that was noticed.
///
/// **Threads**: any.
class FlightRecorder {
 public:
  static constexpr size_t kCapacity = 256;

  /// Writes down that `collective` starts and returns its sequence number.
  int64_t begin(const Collective& collective);
  /// The backend has started it, as `work`.
  void launched(int64_t sequence, const c10::intrusive_ptr<c10d::Work>& work);
  /// `work` is waited for under the name `what`. Returns its sequence number;
  /// 0 if it is none of the group's collectives in flight.
  int64_t awaited(const c10d::Work& work, const std::string& what);
  void finished(int64_t sequence);
  void failed(int64_t sequence);

  bool any_in_flight();
  /// The device of that collective; the CPU for 0.
  at::DeviceType device_of(int64_t sequence) const;
  int64_t last_sequence() const;
  /// Where this rank is, `what` being its call that failed or waits: "barrier
  /// (collective 3: barrier)". `sequence` may be 0.
  std::string position(int64_t sequence, const std::string& what) const;
  /// Changes with each collective; the same on ranks that began the same ones.
  uint64_t hash() const;
  /// Oldest first.
  std::vector<FlightEntry> entries();

 private:
  struct Slot {
    int64_t sequence = 0;
    Collective collective;
    std::string what;
    FlightState state = FlightState::kStarted;
    int64_t started_us = 0;
    int64_t ended_us = 0;
  };
  struct InFlight {
    c10::weak_intrusive_ptr<c10d::Work> work;
    const c10d::Work* address;
    int64_t sequence;
  };

  Slot* slot_of(int64_t sequence);
  const Slot* slot_of(int64_t sequence) const;
  void end(int64_t sequence, FlightState state);
  void drop(int64_t sequence);
  void drop_completed();

  mutable std::mutex mutex_;
  std::array<Slot, kCapacity> slots_;
  std::vector<InFlight> in_flight_;
  int64_t last_sequence_ = 0;
  uint64_t hash_ = 0;
};

} // namespace tandem::comm
