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
    int64_t rank) {
  const auto rank_text = std::to_string(rank);
  const auto size_text = std::to_string(rendezvous.num_ranks);
  Environment set{
      {"RANK", rank_text},
      {"LOCAL_RANK", rank_text},
      {"ROLE_RANK", rank_text},
      {"WORLD_SIZE", size_text},
      {"LOCAL_WORLD_SIZE", size_text},
      {"ROLE_WORLD_SIZE", size_text},
      {"ROLE_NAME", "default"},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"MASTER_ADDR", rendezvous.address},
      {"MASTER_PORT", std::to_string(rendezvous.port)},
      {"TORCHELASTIC_RESTART_COUNT", "0"},
      {"TORCHELASTIC_MAX_RESTARTS", "0"},
      {"TORCHELASTIC_RUN_ID", rendezvous.run_id},
      {"TORCHELASTIC_USE_AGENT_STORE", "True"},
  };
  set.merge(base);
  // An outer torchrun's: it would take this rank's error for its own worker's.
  set.erase("TORCHELASTIC_ERROR_FILE");
  return set;
}

} // namespace tandem::comm::launch
