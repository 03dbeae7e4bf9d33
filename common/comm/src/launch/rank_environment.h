#pragma once

#include <cstdint>
#include <string>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

/// Where the ranks meet, and which of them are this host's.
struct Rendezvous {
  int64_t num_ranks = 1; // of all hosts
  int64_t num_local_ranks = 1;
  int64_t first_rank = 0; // the lowest of this host
  int64_t node_rank = 0;
  int64_t num_nodes = 1;
  std::string address;
  uint16_t port = 0;
  std::string run_id;
  int64_t attempt = 0;
  int64_t max_restarts = 0;
};

/// This process's variables.
Environment current_environment();

/// The variables of one rank: `base` and, over it, what torchrun sets for ranks
/// whose agent serves the store. `error_file`: empty if there is none.
Environment rank_environment(
    Environment base,
    const Rendezvous& rendezvous,
    int64_t local_rank,
    const std::string& error_file = "");

} // namespace tandem::comm::launch
