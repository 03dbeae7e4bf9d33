#include "tcp_store.h"

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

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

c10::intrusive_ptr<c10d::Store> open_tcp_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  c10d::TCPStoreOptions options;
  options.port = env.master_port;
  options.isServer = hosts_store(env);
  options.waitWorkers = false;
  options.timeout = limit;
  // A group made again in this process finds the server of the first one.
  options.multiTenant = true;
  const SigpipeGuard guard;
  try {
    return c10::make_intrusive<c10d::TCPStore>(env.master_addr, options);
  } catch (const std::exception& error) {
    if (options.isServer) {
      throw_cannot_host(env, error);
    }
    throw_unreachable(env, limit, first_sentence(error.what()));
  }
}

} // namespace

c10::intrusive_ptr<c10d::Store> connect_tcp_store(
    const RendezvousEnv& env,
    std::chrono::milliseconds limit) {
  check_resolves(env);
  if (!hosts_store(env)) {
    if (const auto why =
            why_unreachable(env.master_addr, env.master_port, limit)) {
      throw_unreachable(env, limit, *why);
    }
  }
  auto store = open_tcp_store(env, limit);
  if (!env.agent_store) {
    return store;
  }
  return c10::make_intrusive<c10d::PrefixStore>(
      fmt::format("/worker/attempt_{}", env.restart_count),
      std::move(store));
}

} // namespace tandem::comm
