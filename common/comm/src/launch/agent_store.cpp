#include "agent_store.h"

#include <utility>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "sigpipe_guard.h"
#include "sockets.h"

namespace tandem::comm::launch {

AgentStore::AgentStore(std::string host) : host_(std::move(host)) {
  auto socket = listen_at(host_, port_); // TCPStore's would be everywhere
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
