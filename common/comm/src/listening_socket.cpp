#include "listening_socket.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "host_addresses.h"

namespace tandem::comm {

namespace {

using launch::FileDescriptor;

[[noreturn]] void throw_refused(const std::string& address) {
  throw Error(fmt::format("{}: {}", address, std::strerror(errno)));
}

/// An empty descriptor if `address` is not this host's.
FileDescriptor listen_on(const addrinfo& address) {
  FileDescriptor socket(::socket(
      address.ai_family,
      address.ai_socktype | SOCK_CLOEXEC,
      address.ai_protocol));
  if (!socket) {
    return {}; // a family that this system does not speak
  }
  // Connections of a store that has gone hold the port for a minute otherwise.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno == EADDRNOTAVAIL) {
      return {};
    }
    throw_refused(numeric_address(address));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) {
    throw_refused(numeric_address(address));
  }
  return socket;
}

} // namespace

std::optional<ListeningSocket> listen_at(
    const std::string& host,
    uint16_t port,
    bool one_host) {
  int error = 0;
  const auto addresses = resolve_host(host, port, error);
  for (const auto* next = addresses.get(); next != nullptr;
       next = next->ai_next) {
    if (!one_host && is_loopback_address(*next->ai_addr)) {
      continue;
    }
    if (auto socket = listen_on(*next)) {
      return ListeningSocket{std::move(socket), numeric_address(*next)};
    }
  }
  return std::nullopt;
}

} // namespace tandem::comm
