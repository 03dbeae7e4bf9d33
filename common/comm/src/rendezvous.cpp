#include "rendezvous.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include <fcntl.h>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "launch/file_descriptor.h"
#include "tcp_store.h"
#include "text.h"

namespace tandem::comm {

namespace {

/// Variables laid over others; no value: not set.
using Overlay = std::map<std::string, std::optional<std::string>>;

EnvLookup overlaid(const EnvLookup& base, const Overlay& overlay) {
  return [&base, overlay](const std::string& name) {
    const auto found = overlay.find(name);
    return found == overlay.end() ? base(name) : found->second;
  };
}

void check_option(
    const std::string& name,
    const std::optional<int64_t>& option,
    const std::optional<int64_t>& in_url,
    int64_t min) {
  if (option && *option < min) {
    throw ConfigError(fmt::format(
        "{}: expected a number from {}, got {}",
        name,
        min,
        *option));
  }
  if (option && in_url && *option != *in_url) {
    throw ConfigError(fmt::format(
        "{}: expected the same in the options and in init_method, got {} and "
        "{}",
        name,
        *option,
        *in_url));
  }
}

/// What options and URL say of this rank, as variables.
Overlay rank_overlay(
    const ProcessGroupOptions& options,
    const InitMethod& method) {
  check_option("rank", options.rank(), method.rank, 0);
  check_option("world_size", options.world_size(), method.world_size, 1);
  const auto rank = options.rank() ? options.rank() : method.rank;
  const auto size =
      options.world_size() ? options.world_size() : method.world_size;
  if (rank && size && *rank >= *size) {
    throw ConfigError(fmt::format(
        "rank: expected one below world_size, which is {}, got {}",
        *size,
        *rank));
  }
  Overlay overlay;
  if (rank) {
    overlay["RANK"] = std::to_string(*rank);
  }
  if (size) {
    overlay["WORLD_SIZE"] = std::to_string(*size);
  }
  return overlay;
}

/// Variables that stand for a place which is not the environment's.
Overlay place_overlay(const InitMethod& method, bool has_address) {
  // Of another place than the launcher's store.
  Overlay overlay{
      {"TORCHELASTIC_USE_AGENT_STORE", std::nullopt},
      {"TORCHELASTIC_RESTART_COUNT", std::nullopt}};
  overlay["MASTER_ADDR"] = has_address ? method.host : "127.0.0.1";
  overlay["MASTER_PORT"] = has_address ? std::to_string(method.port) : "1";
  return overlay;
}

/// Which of a host's devices to take is asked for only where it matters.
void add_local_ranks(const EnvLookup& lookup, Overlay& overlay) {
  if (!lookup("LOCAL_RANK") && !lookup("LOCAL_WORLD_SIZE")) {
    overlay["LOCAL_RANK"] = "0";
    overlay["LOCAL_WORLD_SIZE"] = "1";
  }
}

[[noreturn]] void throw_bad_file(
    const Rendezvous& rendezvous,
    const std::string& why) {
  const auto& env = rendezvous.env;
  throw ConfigError(fmt::format(
      "{} init_method: expected a file that can be written and locked, got "
      "'{}' ({})",
      rank_tag("comm", env.rank, env.world_size),
      rendezvous.method.path,
      why));
}

c10::intrusive_ptr<c10d::Store> open_file_store(
    const Rendezvous& rendezvous,
    std::chrono::milliseconds limit) {
  // c10d would try for five minutes.
  constexpr mode_t mode = 0644;
  const launch::FileDescriptor file(::open(
      rendezvous.method.path.c_str(),
      O_RDWR | O_CREAT | O_CLOEXEC,
      mode));
  if (!file) {
    throw_bad_file(rendezvous, std::strerror(errno));
  }
  try {
    auto store = c10::make_intrusive<c10d::FileStore>(
        rendezvous.method.path,
        static_cast<int>(rendezvous.env.world_size));
    store->setTimeout(limit);
    return store;
  } catch (const std::exception& error) {
    throw_bad_file(rendezvous, first_sentence(error.what()));
  }
}

} // namespace

Rendezvous plan_rendezvous(
    const ProcessGroupOptions& options,
    bool with_store,
    const EnvLookup& lookup,
    std::optional<int64_t> visible_devices) {
  Rendezvous rendezvous;
  if (!with_store) {
    rendezvous.method = parse_init_method(options.init_method());
  }
  const auto kind = rendezvous.method.kind;
  const bool from_env = !with_store && kind == InitMethod::Kind::kEnvironment;
  const bool has_address = !with_store && kind == InitMethod::Kind::kTcp;
  auto overlay = rank_overlay(options, rendezvous.method);
  if (!from_env) {
    overlay.merge(place_overlay(rendezvous.method, has_address));
    if (!visible_devices) {
      add_local_ranks(lookup, overlay);
    }
  }
  rendezvous.env =
      parse_rendezvous_env(overlaid(lookup, overlay), visible_devices);
  if (!from_env && !has_address) {
    rendezvous.env.master_addr.clear();
    rendezvous.env.master_port = 0;
    rendezvous.env.one_host = rendezvous.env.world_size == 1;
  }
  return rendezvous;
}

c10::intrusive_ptr<c10d::Store> open_store(
    const Rendezvous& rendezvous,
    std::chrono::milliseconds limit) {
  return rendezvous.method.kind == InitMethod::Kind::kFile
      ? open_file_store(rendezvous, limit)
      : connect_tcp_store(rendezvous.env, limit);
}

} // namespace tandem::comm
