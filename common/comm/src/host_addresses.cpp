#include "host_addresses.h"

#include <array>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace tandem::comm {

HostAddresses resolve_host(const std::string& host, uint16_t port, int& error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {found, &freeaddrinfo};
}

std::string numeric_address(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(
      address.ai_addr,
      address.ai_addrlen,
      text.data(),
      text.size(),
      nullptr,
      0,
      NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : "";
}

bool is_loopback_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(ipv4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ipv6.sin6_addr);
}

} // namespace tandem::comm
