#include "tcp_store.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "hosted_store.h"
#include "listening_socket.h"
#include "sigpipe_guard.h"
#include "tcp_probe.h"
#include "text.h"

namespace tandem::comm {

namespace {

bool hosts_store(const RendezvousEnv& env) {
  return env.rank == 0 && !env.agent_store;
}

std::string tag_of(const RendezvousEnv& env) {
  return rank_tag("comm", env.rank, env.world_size);
}

void check_resolves(const RendezvousEnv& env) {
  if (const auto why = why_unresolvable(env.master_addr)) {
    throw ConfigError(fmt::format(
        "{} MASTER_ADDR: expected a name or address that this host can "
        "resolve, got '{}' ({})",
        tag_of(env),
        env.master_addr,
        *why));
  }
}

[[noreturn]] void throw_cannot_host(
    const RendezvousEnv& env,
    const std::exception& error) {
  throw ConfigError(fmt::format(
      "{} MASTER_PORT: expected a port on which rank 0 can listen, got {} "
      "({}). Choose another port",
      tag_of(env),
      env.master_port,
      first_sentence(error.what())));
}

[[noreturn]] void throw_unreachable(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit,
    const std::string& why) {
  throw TimeoutError(fmt::format(
      "{} {}: expected its store at MASTER_ADDR '{}' port {} within {}, got no "
      "connection ({}). Check that it was started and can be reached",
      tag_of(env),
      env.agent_store ? "launcher" : "rank 0",
      env.master_addr,
      env.master_port,
      format_limit(limit),
      why));
}

c10d::TCPStoreOptions store_options(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = env.master_port;
  options.waitWorkers = false;
  options.timeout = limit;
  return options;
}

/// Note [The store's interface]
/// c10d's server listens on all interfaces. Ours listens where the ranks look
/// for it, at MASTER_ADDR: on the loopback interface alone if that is a
/// loopback address. All interfaces remain where MASTER_ADDR is no address of
/// this host (see `listen_at`). A group made again in this process finds the
/// server of the first one: then there is nothing to listen on.
c10::intrusive_ptr<c10d::Store> host_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  auto options = store_options(env, limit);
  options.isServer = true;
  options.multiTenant = true;
  const auto running = HostedStore::running_at(env.master_port);
  auto address = running.value_or(env.master_addr);
  const SigpipeGuard guard;
  try {
    if (!running) {
      auto socket = listen_at(env.master_addr, env.master_port, env.one_host);
      if (socket) {
        address = socket->address;
        options.masterListenFd = socket->fd.release(); // the store closes it
      }
    }
    return c10::make_intrusive<HostedStore>(address, options);
  } catch (const std::exception& error) {
    throw_cannot_host(env, error);
  }
}

c10::intrusive_ptr<c10d::Store> join_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  const auto found = find_listener(env.master_addr, env.master_port, limit);
  if (!found.address) {
    throw_unreachable(env, limit, found.why);
  }
  const SigpipeGuard guard;
  try {
    return c10::make_intrusive<c10d::TCPStore>(
        *found.address,
        store_options(env, limit));
  } catch (const std::exception& error) {
    throw_unreachable(env, limit, first_sentence(error.what()));
  }
}

} // namespace

c10::intrusive_ptr<c10d::Store> connect_tcp_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  check_resolves(env);
  if (hosts_store(env)) {
    return host_store(env, limit);
  }
  auto store = join_store(env, limit);
  if (!env.agent_store) {
    return store;
  }
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("/worker/attempt_{}", env.restart_count),
      std::move(store));
}

} // namespace tandem::comm
