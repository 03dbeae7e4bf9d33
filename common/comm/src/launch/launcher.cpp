#include <tandem/comm/launcher.h>

#include <chrono>
#include <optional>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launch_session.h"
#include "tcp_probe.h"
#include "text.h"

namespace tandem::comm {

namespace {

// Each takes two descriptors, and 1024 is the usual limit.
constexpr int64_t kMaxLocalRanks = 500;
// Node 0 has a connection to each.
constexpr int64_t kMaxNodes = 500;
constexpr auto kMinNodeTimeout = std::chrono::seconds(2);

void check_nodes(const LaunchOptions& options) {
  if (options.num_nodes() < 1 || options.num_nodes() > kMaxNodes) {
    throw ConfigError(fmt::format(
        "[launch] number of nodes: expected 1 to {}, got {}",
        kMaxNodes,
        options.num_nodes()));
  }
  if (options.node_rank() < 0 || options.node_rank() >= options.num_nodes()) {
    throw ConfigError(fmt::format(
        "[launch] node rank: expected 0 to {}, got {}",
        options.num_nodes() - 1,
        options.node_rank()));
  }
  if (options.num_nodes() == 1) {
    return;
  }
  if (options.node_timeout() < kMinNodeTimeout) {
    throw ConfigError(fmt::format(
        "[launch] node timeout: expected {} or more, since launchers speak "
        "each second, got {}",
        format_limit(kMinNodeTimeout),
        format_limit(options.node_timeout())));
  }
  if (options.master_port() == 0) {
    throw ConfigError(
        "[launch] master port: expected one that all nodes know, got 0");
  }
  const auto why = options.master_addr().empty()
      ? std::make_optional<std::string>("several nodes meet there")
      : why_unresolvable(options.master_addr());
  if (why) {
    throw ConfigError(fmt::format(
        "[launch] master address: expected the name or address of node 0, got "
        "'{}' ({})",
        options.master_addr(),
        *why));
  }
}

void check_options(const LaunchOptions& options) {
  if (options.num_ranks() < 1 || options.num_ranks() > kMaxLocalRanks) {
    throw ConfigError(fmt::format(
        "[launch] number of ranks: expected 1 to {}, got {}",
        kMaxLocalRanks,
        options.num_ranks()));
  }
  if (options.max_restarts() < 0) {
    throw ConfigError(fmt::format(
        "[launch] number of restarts: expected 0 or more, got {}",
        options.max_restarts()));
  }
  if (options.command().empty() || options.command().front().empty()) {
    throw ConfigError(
        "[launch] program: expected one after the options, got none");
  }
  check_nodes(options);
}

// A descriptor opened later must not get the number of a closed stdin, stdout
// or stderr: a rank's own would be put in its place.
void open_standard_streams() {
  int fd = 0;
  do {
    fd = launch::checked(::open("/dev/null", O_RDWR), "open /dev/null");
  } while (fd <= STDERR_FILENO);
  ::close(fd);
}

} // namespace

ProgramError::ProgramError(std::string message, int exit_code)
    : ConfigError(std::move(message)), exit_code_(exit_code) {}

LaunchResult launch_local(const LaunchOptions& options) {
  check_options(options);
  open_standard_streams();
  return launch::LaunchSession(options).run();
}

} // namespace tandem::comm
