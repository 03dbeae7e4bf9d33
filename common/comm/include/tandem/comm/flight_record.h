#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// How a recorded collective stands.
enum class FlightState { kStarted, kFinished, kFailed };

/// One collective of one rank.
struct FlightEntry {
  /// Counts the collectives that this rank started in the group, from 1.
  int64_t sequence = 0;
  /// "all-reduce", "broadcast" or "barrier".
  std::string operation;
  /// All of it, as all ranks must call it: "all-reduce (sum) of float [1000]".
  std::string call;
  /// What it was for, as its error would say; empty until it is waited for.
  std::string what;
  FlightState state = FlightState::kStarted;
  /// Microseconds since 1970; the end is when it was noticed, 0 before.
  int64_t started_us = 0;
  int64_t ended_us = 0;
};

/// What one rank has done in one group of late.
struct FlightRecord {
  /// The same for all ranks of the group, and for no other group.
  std::string group;
  int64_t rank = 0;
  int64_t size = 1;
  int64_t pid = 0;
  std::string host;
  /// Why it was written: "timeout", "error", "mismatch", "signal", or "peer"
  /// where another rank told of a failure.
  std::string reason;
  int64_t written_us = 0;
  /// Message of the group's failure, and the ranks that a roll call missed.
  std::string failure;
  std::vector<int64_t> missing;
  /// The last collectives, oldest first.
  std::vector<FlightEntry> entries;
};

/// As JSON.
std::string format_flight_record(const FlightRecord& record);

/// **Throws** `ConfigError` naming `source` if `text` is no flight record.
FlightRecord parse_flight_record(
    const std::string& text,
    const std::string& source);

} // namespace tandem::comm
