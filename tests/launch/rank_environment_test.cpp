#include "tandem_catch.h"

#include <tandem/comm/rendezvous_env.h>

#include "launch/rank_environment.h"

using namespace tandem::comm;

TEST_CASE(
    "rank_environment gives each rank variables that comm accepts",
    "[launch]") {
  const launch::Rendezvous rendezvous{
      .num_ranks = 3,
      .num_local_ranks = 3,
      .address = "127.0.0.1",
      .port = 4567,
      .run_id = "job"};
  const Environment base{
      {"RANK", "7"},
      {"MASTER_PORT", "1"},
      {"HOME", "/home"},
      {"TORCHELASTIC_ERROR_FILE", "/outer"}};
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto variables = launch::rank_environment(base, rendezvous, rank);
    CHECK(variables.at("HOME") == "/home");
    CHECK(variables.at("TORCHELASTIC_RUN_ID") == "job");
    CHECK(variables.count("TORCHELASTIC_ERROR_FILE") == 0);
    const auto env = parse_rendezvous_env(
        [&](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt
                                          : std::optional(found->second);
        },
        std::nullopt);
    CHECK(env.rank == rank);
    CHECK(env.local_rank == rank);
    CHECK(env.world_size == 3);
    CHECK(env.local_world_size == 3);
    CHECK(env.master_addr == "127.0.0.1");
    CHECK(env.master_port == 4567);
    CHECK(env.agent_store);
    CHECK(env.restart_count == 0);
  }
}
