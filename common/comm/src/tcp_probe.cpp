#include "tcp_probe.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tandem::comm {

namespace {

using namespace std::chrono_literals;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr std::chrono::milliseconds kConnectLimit = 1000ms;
constexpr std::chrono::milliseconds kProbePause = 100ms;

Addresses resolve_host(const std::string& host, uint16_t port, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {found, &freeaddrinfo};
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

std::optional<std::string> why_unreachable(
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
        return std::nullopt;
      }
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return std::strerror(last_errno);
    }
    std::this_thread::sleep_for(kProbePause);
  }
}

} // namespace tandem::comm
