#include "agent_store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "file_descriptor.h"
#include "sigpipe_guard.h"

namespace tandem::comm::launch {

namespace {

// TCPStore by itself would listen on every interface.
FileDescriptor listen_on_loopback(uint16_t& port) {
  FileDescriptor socket(
      checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  checked(::bind(socket.get(), generic, size), "bind to 127.0.0.1");
  checked(::listen(socket.get(), SOMAXCONN), "listen on 127.0.0.1");
  checked(::getsockname(socket.get(), generic, &size), "getsockname");
  port = ntohs(address.sin_port);
  return socket;
}

} // namespace

AgentStore::AgentStore() {
  auto socket = listen_on_loopback(port_);
  c10d::TCPStoreOptions options;
  options.isServer = true;
  options.port = port_;
  options.waitWorkers = false;
  options.masterListenFd = socket.release(); // the store closes it
  const SigpipeGuard guard;
  store_ = c10::make_intrusive<c10d::TCPStore>(address(), options);
}

AgentStore::~AgentStore() = default;

} // namespace tandem::comm::launch
