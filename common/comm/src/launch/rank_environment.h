#pragma once

#include <cstdint>
#include <string>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

/// Where the ranks of one host meet.
struct Rendezvous {
  int64_t num_ranks = 1;
  std::string address;
  uint16_t port = 0;
  std::string run_id;
};

/// This process's variables.
Environment current_environment();

/// The variables of one rank: `base` and, over it, what torchrun sets for a
/// single host whose agent serves the store.
Environment rank_environment(
    Environment base,
    const Rendezvous& rendezvous,
    int64_t rank);

} // namespace tandem::comm::launch
