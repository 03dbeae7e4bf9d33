#include "sockets.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::comm::launch {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// Empty, with `why` set, if there is none.
AddressList addresses_of(
    const std::string& host,
    uint16_t port,
    std::string& why) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const auto service = std::to_string(port);
  const int error =
      ::getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (error != 0) {
    why = ::gai_strerror(error);
  }
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

FileDescriptor stream_socket(const addrinfo& address) {
  return FileDescriptor(::socket(
      address.ai_family,
      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
      address.ai_protocol));
}

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* generic() {
    return reinterpret_cast<sockaddr*>(&storage);
  }
};

std::string in_digits(SocketAddress& address) {
  std::array<char, NI_MAXHOST> text{};
  const int error = ::getnameinfo(
      address.generic(),
      address.size,
      text.data(),
      text.size(),
      nullptr,
      0,
      NI_NUMERICHOST);
  return error == 0 ? text.data() : "an unknown address";
}

uint16_t own_port(const FileDescriptor& socket) {
  SocketAddress address;
  checked(
      ::getsockname(socket.get(), address.generic(), &address.size),
      "getsockname");
  return ntohs(
      address.storage.ss_family == AF_INET6
          ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
          : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

bool bind_and_listen(const FileDescriptor& socket, const addrinfo& address) {
  // Connections of a launch before, which the kernel keeps for a minute, are
  // no reason to refuse the port.
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  return ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 &&
      ::listen(socket.get(), SOMAXCONN) == 0;
}

// 0, or the errno.
int connect_within(
    const FileDescriptor& socket,
    const addrinfo& address,
    std::chrono::milliseconds limit) {
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd wanted{socket.get(), POLLOUT, 0};
  if (::poll(&wanted, 1, static_cast<int>(limit.count())) != 1) {
    return ETIMEDOUT;
  }
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

} // namespace

FileDescriptor listen_at(const std::string& host, uint16_t& port) {
  std::string why;
  const auto addresses = addresses_of(host, port, why);
  for (const auto* next = addresses.get(); next != nullptr;
       next = next->ai_next) {
    auto socket = stream_socket(*next);
    if (socket && bind_and_listen(socket, *next)) {
      port = own_port(socket);
      return socket;
    }
    why = std::strerror(errno);
  }
  throw ConfigError(fmt::format(
      "[launch] master address '{}' port {}: expected an address of this host "
      "and a port that is free there, got: {}",
      host,
      port,
      why));
}

FileDescriptor accept_from(const FileDescriptor& listener) {
  return FileDescriptor(::accept4(
      listener.get(),
      nullptr,
      nullptr,
      SOCK_CLOEXEC | SOCK_NONBLOCK));
}

FileDescriptor connect_to(
    const std::string& host,
    uint16_t port,
    std::chrono::milliseconds limit,
    std::string& why) {
  const auto addresses = addresses_of(host, port, why);
  for (const auto* next = addresses.get(); next != nullptr;
       next = next->ai_next) {
    auto socket = stream_socket(*next);
    const int error = socket ? connect_within(socket, *next, limit) : errno;
    if (error == 0) {
      return socket;
    }
    why = std::strerror(error);
  }
  return {};
}

std::string own_address(const FileDescriptor& socket) {
  SocketAddress address;
  ::getsockname(socket.get(), address.generic(), &address.size);
  return in_digits(address);
}

std::string peer_address(const FileDescriptor& socket) {
  SocketAddress address;
  ::getpeername(socket.get(), address.generic(), &address.size);
  return in_digits(address);
}

} // namespace tandem::comm::launch
