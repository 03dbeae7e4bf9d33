#pragma once

#include <string>
#include <vector>

#include <tandem/comm/flight_record.h>

namespace tandem::bench {

/// What the flight records of a job show, in two lines.
struct FlightVerdict {
  bool is_healthy = true;
  /// Which ranks are missing, behind or different, and at which collective.
  std::string finding;
  /// Where the other ranks were, and what to do.
  std::string context;
};

/// Looks at the group that failed first; without a failure, at the one in which
/// ranks are furthest apart. `records` is not empty.
FlightVerdict judge_flight(const std::vector<comm::FlightRecord>& records);

} // namespace tandem::bench
