#pragma once

#include <filesystem>
#include <vector>

#include <tandem/comm/flight_record.h>

namespace tandem::bench {

/// The flight records of all ranks and groups in `folder`.
/// **Throws** `ConfigError` if there is none, or a file named like one is none.
std::vector<comm::FlightRecord> read_flight_records(
    const std::filesystem::path& folder);

} // namespace tandem::bench
