#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <tandem/comm/launcher.h>

#include "coordination.h"
#include "restarts.h"

namespace tandem::comm::launch {

/// What a node says first.
struct Hello {
  std::string protocol;
  int64_t num_nodes = 1;
  int64_t node_rank = 0;
  int64_t num_local_ranks = 1;
  int64_t max_restarts = 0;
};

/// Of the launcher with `options`.
Hello hello_of(const LaunchOptions& options);

// Each message's "type" is its name in lower case. Times are sent as ages: the
// hosts' clocks may differ. What reads a message throws `nlohmann::json::
// exception` if it is not as it should be.
nlohmann::json to_message(const Hello& hello);
nlohmann::json to_message(const Start& start);
nlohmann::json to_message(const AttemptEnd& end);
nlohmann::json to_message(const Finish& finish);
Hello read_hello(const nlohmann::json& message);
Start read_start(const nlohmann::json& message);
AttemptEnd read_end(const nlohmann::json& message);
Finish read_finish(const nlohmann::json& message);

} // namespace tandem::comm::launch
