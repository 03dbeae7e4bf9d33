#include <tandem/comm/local_rendezvous.h>

#include "launch/agent_store.h"
#include "launch/rank_environment.h"

namespace tandem::comm {

LocalRendezvous::LocalRendezvous(int64_t num_ranks)
    : num_ranks_(num_ranks), store_(std::make_unique<launch::AgentStore>()) {}

LocalRendezvous::~LocalRendezvous() = default;

Environment LocalRendezvous::environment_of(int64_t rank) const {
  return launch::rank_environment(
      launch::current_environment(),
      {.num_ranks = num_ranks_,
       .num_local_ranks = num_ranks_,
       .address = store_->address(),
       .port = store_->port(),
       .run_id = "local"},
      rank);
}

} // namespace tandem::comm
