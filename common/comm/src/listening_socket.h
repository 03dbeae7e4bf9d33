#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launch/file_descriptor.h"

namespace tandem::comm {

/// A TCP socket that listens on one address of this host.
struct ListeningSocket {
  launch::FileDescriptor fd;
  /// In digits.
  std::string address;
};

/// Listens at `host`'s first address that is one of this host's, on no other
/// interface. Nothing if there is none: `host` is known here by an address that
/// is forwarded, or, where ranks are on other hosts (not `one_host`), by a
/// loopback address only, as Debian's /etc/hosts has it.
/// **Throws** `Error` if the port is taken or the system refuses.
std::optional<ListeningSocket> listen_at(
    const std::string& host,
    uint16_t port,
    bool one_host);

} // namespace tandem::comm
