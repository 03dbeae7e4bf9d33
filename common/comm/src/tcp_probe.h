#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tandem::comm {

/// Why `host` is no name or address that can be resolved here; nothing if it
/// is one.
std::optional<std::string> why_unresolvable(const std::string& host);

struct ProbeResult {
  /// In digits; nothing if nobody listens.
  std::optional<std::string> address;
  /// Why nobody was found.
  std::string why;
};

/// Tries until `limit` at which of the addresses of `host`, which can be
/// resolved, somebody listens. c10d would try too, but only addresses of one
/// kind, fills stderr and takes twice its limit.
ProbeResult find_listener(
    const std::string& host,
    uint16_t port,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
