#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tandem/comm/env_reader.h>

namespace tandem::comm {

/// What the variables of torchrun say about this process and its peers.
struct RendezvousEnv {
  /// RANK
  int64_t rank = 0;
  /// WORLD_SIZE
  int64_t world_size = 1;
  /// LOCAL_RANK: rank among the processes of this host.
  int64_t local_rank = 0;
  /// LOCAL_WORLD_SIZE
  int64_t local_world_size = 1;
  /// MASTER_ADDR: host of the store.
  std::string master_addr;
  /// MASTER_PORT; 0 lets the host of the store choose.
  uint16_t master_port = 0;
  /// TORCHELASTIC_USE_AGENT_STORE: the launcher hosts the store, rank 0 is a
  /// client like the others.
  bool agent_store = false;
  /// TORCHELASTIC_RESTART_COUNT
  int64_t restart_count = 0;
  /// All ranks run on this host.
  bool one_host = false;
};

/// Reads and checks the variables; resolves no name and opens no socket.
///
/// LOCAL_RANK and LOCAL_WORLD_SIZE may both be absent if all ranks are on one
/// host (MASTER_ADDR is a loopback address, or there is one rank).
/// `visible_devices` is the number of CUDA devices that this process sees, or
/// nothing if CUDA was not chosen.
/// **Throws** `ConfigError` naming the variable, its value and the rule, in one
/// line.
RendezvousEnv parse_rendezvous_env(
    const EnvLookup& lookup,
    std::optional<int64_t> visible_devices);

} // namespace tandem::comm
