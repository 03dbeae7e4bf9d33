#include "rank_environment.h"

#include <string_view>

#include <unistd.h>

namespace tandem::comm::launch {

Environment current_environment() {
  Environment variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos) {
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return variables;
}

Environment rank_environment(
    Environment base,
    const Rendezvous& rendezvous,
    int64_t local_rank,
    const std::string& error_file) {
  const auto rank_text = std::to_string(rendezvous.first_rank + local_rank);
  const auto size_text = std::to_string(rendezvous.num_ranks);
  Environment set{
      {"RANK", rank_text},
      {"LOCAL_RANK", std::to_string(local_rank)},
      {"ROLE_RANK", rank_text},
      {"WORLD_SIZE", size_text},
      {"LOCAL_WORLD_SIZE", std::to_string(rendezvous.num_local_ranks)},
      {"ROLE_WORLD_SIZE", size_text},
      {"ROLE_NAME", "default"},
      {"GROUP_RANK", std::to_string(rendezvous.node_rank)},
      {"GROUP_WORLD_SIZE", std::to_string(rendezvous.num_nodes)},
      {"MASTER_ADDR", rendezvous.address},
      {"MASTER_PORT", std::to_string(rendezvous.port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(rendezvous.attempt)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(rendezvous.max_restarts)},
      {"TORCHELASTIC_RUN_ID", rendezvous.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
  };
  // An outer torchrun's would take this rank's error for its own worker's.
  base.erase("TORCHELASTIC_ERROR_FILE");
  if (!error_file.empty()) {
    set.emplace("TORCHELASTIC_ERROR_FILE", error_file);
  }
  set.merge(base);
  return set;
}

} // namespace tandem::comm::launch
