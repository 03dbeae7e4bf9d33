#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <netdb.h>
#include <sys/socket.h>

namespace tandem::comm {

using HostAddresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of `host`, a name or an address, for a TCP connection to
/// `port`. If there are none, `error` becomes what `gai_strerror` explains.
HostAddresses resolve_host(const std::string& host, uint16_t port, int& error);

/// `address` in digits, without its port.
std::string numeric_address(const addrinfo& address);

/// Reaches nobody but this host.
bool is_loopback_address(const sockaddr& address);

} // namespace tandem::comm
