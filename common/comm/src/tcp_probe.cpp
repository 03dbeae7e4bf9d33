#include "tcp_probe.h"

#include <cerrno>
#include <cstring>
#include <thread>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host_addresses.h"

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kConnectLimit = 1000ms;
constexpr std::chrono::milliseconds kProbePause = 100ms;

/// True if `fd` is connected to itself: the kernel may choose the very port that
/// nobody listens on yet as this end's.
bool is_own_end(int fd) {
  sockaddr_storage own{};
  sockaddr_storage peer{};
  socklen_t own_size = sizeof own;
  socklen_t peer_size = sizeof peer;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) == 0 &&
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0 &&
      own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

/// The errno of a connection to `address`; 0 if there is somebody.
int try_connect(const addrinfo& address) {
  const int fd = socket(
      address.ai_family,
      address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
      address.ai_protocol);
  if (fd < 0) {
    return errno;
  }
  int error = 0;
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0) {
    error = errno;
  }
  if (error == EINPROGRESS) {
    pollfd wanted{fd, POLLOUT, 0};
    socklen_t size = sizeof error;
    if (poll(&wanted, 1, static_cast<int>(kConnectLimit.count())) == 1) {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    } else {
      error = ETIMEDOUT;
    }
  }
  if (error == 0 && is_own_end(fd)) {
    error = ECONNREFUSED;
    // Leaves nothing behind that holds the port against whoever will listen.
    const linger at_once{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  close(fd);
  return error;
}

} // namespace

std::optional<std::string> why_unresolvable(const std::string& host) {
  int error = 0;
  resolve_host(host, 0, error);
  return error == 0 ? std::nullopt
                    : std::make_optional<std::string>(gai_strerror(error));
}

ProbeResult find_listener(
    const std::string& host,
    uint16_t port,
    std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (;;) {
    int error = 0;
    const auto addresses = resolve_host(host, port, error);
    int last_errno = EADDRNOTAVAIL;
    for (const auto* next = addresses.get(); next != nullptr;
         next = next->ai_next) {
      last_errno = try_connect(*next);
      if (last_errno == 0) {
        return {numeric_address(*next), ""};
      }
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return {std::nullopt, std::strerror(last_errno)};
    }
    std::this_thread::sleep_for(kProbePause);
  }
}

} // namespace tandem::comm
