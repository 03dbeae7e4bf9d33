#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "file_descriptor.h"

namespace tandem::comm::launch {

/// Listens at `host`, a name or address of this one, and on no other interface.
/// `port` 0 lets the kernel choose, and is set to its choice. Accepting does
/// not block.
/// **Throws** `ConfigError` if that cannot be.
FileDescriptor listen_at(const std::string& host, uint16_t& port);

/// The next connection to `listener`; none if nobody waits.
FileDescriptor accept_from(const FileDescriptor& listener);

/// One try to connect, of at most `limit` for each address of `host`. If it
/// fails, returns none and sets `why`.
FileDescriptor connect_to(
    const std::string& host,
    uint16_t port,
    std::chrono::milliseconds limit,
    std::string& why);

/// "10.0.0.1", of this end.
std::string own_address(const FileDescriptor& socket);

/// "10.0.0.2", of the other end.
std::string peer_address(const FileDescriptor& socket);

} // namespace tandem::comm::launch
