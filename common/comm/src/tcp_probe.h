#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace tandem::comm {

/// Why `host` is no name or address that can be resolved here; nothing if it
/// is one.
std::optional<std::string> why_unresolvable(const std::string& host);

/// Tries until `limit` whether somebody listens at `host`, which can be
/// resolved; why not, or nothing if so. c10d would try too, but fills stderr
/// and takes twice its limit.
std::optional<std::string> why_unreachable(
    const std::string& host,
    uint16_t port,
    std::chrono::milliseconds limit);

} // namespace tandem::comm
