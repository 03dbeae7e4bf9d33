#include <tandem/comm/rendezvous_env.h>

#include <limits>

#include <fmt/format.h>

#include <tandem/comm/env_reader.h>
#include <tandem/core/errors.h>

namespace tandem::comm {

namespace {

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxPort = std::numeric_limits<uint16_t>::max();

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void read_ranks(const EnvReader& reader, RendezvousEnv& env) {
  env.world_size = reader.number(
      "WORLD_SIZE",
      1,
      kMaxCount,
      "the number of ranks, decimal digits from 1 to 2147483647");
  env.rank = reader.number(
      "RANK",
      0,
      kMaxCount,
      "this process's rank, decimal digits from 0 to WORLD_SIZE - 1");
  if (env.rank >= env.world_size) {
    reader.reject(
        "RANK",
        fmt::format("a rank below WORLD_SIZE, which is {}", env.world_size));
  }
}

void read_store(const EnvReader& reader, RendezvousEnv& env) {
  env.master_addr = reader.text(
      "MASTER_ADDR",
      "the name or address of rank 0's host, without spaces");
  const auto agent = reader.has("TORCHELASTIC_USE_AGENT_STORE")
      ? reader.text("TORCHELASTIC_USE_AGENT_STORE", "True or False")
      : "False";
  if (agent != "True" && agent != "False") {
    reader.reject("TORCHELASTIC_USE_AGENT_STORE", "True or False");
  }
  env.agent_store = agent == "True";
  if (env.agent_store && reader.has("TORCHELASTIC_RESTART_COUNT")) {
    env.restart_count = reader.number(
        "TORCHELASTIC_RESTART_COUNT",
        0,
        kMaxCount,
        "the number of restarts, decimal digits from 0 to 2147483647");
  }
  // A port that the kernel chose could not be told to the other ranks.
  const bool may_choose = env.world_size == 1 && !env.agent_store;
  env.master_port = static_cast<uint16_t>(reader.number(
      "MASTER_PORT",
      may_choose ? 0 : 1,
      kMaxPort,
      may_choose ? "a port, decimal digits from 0 (choose one) to 65535"
                 : "the port of the store, decimal digits from 1 to 65535"));
  env.one_host = is_loopback(env.master_addr) || env.world_size == 1;
}

void read_local_ranks(const EnvReader& reader, RendezvousEnv& env) {
  const bool absent =
      !reader.has("LOCAL_RANK") && !reader.has("LOCAL_WORLD_SIZE");
  if (absent && env.one_host) {
    env.local_rank = env.rank;
    env.local_world_size = env.world_size;
    return;
  }
  const std::string remedy = absent
      ? "; set LOCAL_RANK and LOCAL_WORLD_SIZE, which can be derived only if "
        "MASTER_ADDR is a loopback address"
      : "";
  env.local_world_size = reader.number(
      "LOCAL_WORLD_SIZE",
      1,
      env.world_size,
      fmt::format(
          "the number of ranks on this host, decimal digits from 1 to "
          "WORLD_SIZE ({}){}",
          env.world_size,
          remedy));
  env.local_rank = reader.number(
      "LOCAL_RANK",
      0,
      kMaxCount,
      "this process's rank on its host, decimal digits from 0 to "
      "LOCAL_WORLD_SIZE - 1");
  if (env.local_rank >= env.local_world_size) {
    reader.reject(
        "LOCAL_RANK",
        fmt::format(
            "a rank below LOCAL_WORLD_SIZE, which is {}",
            env.local_world_size));
  }
  env.one_host = env.one_host || env.local_world_size == env.world_size;
}

} // namespace

RendezvousEnv parse_rendezvous_env(
    const EnvLookup& lookup,
    std::optional<int64_t> visible_devices) {
  const EnvReader reader(lookup);
  RendezvousEnv env;
  read_ranks(reader, env);
  read_store(reader, env);
  read_local_ranks(reader, env);
  if (visible_devices && env.local_rank >= *visible_devices) {
    throw ConfigError(fmt::format(
        "LOCAL_RANK: expected a CUDA device for each rank of this host, got "
        "{} where {} can be seen. Start fewer ranks, or choose the CPU",
        env.local_rank,
        *visible_devices));
  }
  return env;
}

} // namespace tandem::comm
