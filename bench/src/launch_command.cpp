#include "commands.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tandem/comm/launcher.h>
#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

// What stands behind the options, not yet checked.
struct LaunchWords {
  std::string num_ranks;
  std::string max_restarts = "0";
  std::string num_nodes = "1";
  std::string node_rank = "0";
  std::string master_addr;
  std::string master_port = std::to_string(comm::kDefaultMasterPort);
  std::string meet_timeout_s = "300";
  std::string node_timeout_s = "10";
};

constexpr auto kLaunchFooter = R"(
tandem launch -n N [--] program [arguments]

Each rank gets torchrun's variables (RANK, WORLD_SIZE, MASTER_PORT, ...), reads
from /dev/null, and has its lines passed on after "[rank r] ". When one fails,
the others get SIGTERM and 5 s later SIGKILL, and the failure is reported, with
what the rank wrote to the file TORCHELASTIC_ERROR_FILE. With --max-restarts all
ranks then start again (TORCHELASTIC_RESTART_COUNT counts).
SIGINT and SIGTERM are passed on; a second one is SIGKILL at once.

On several hosts, run it once on each, with --nnodes N --node-rank R
--master-addr HOST, HOST being that of node 0. A failure or an interrupt on one
ends all, restarts are of all, and each returns the same code.

Exit code: 0 if all ranks succeeded in the end, else that of the first one that
failed (in the first attempt), 128 + signal for a signal; 127 for a program not found, 126 for one that is not
executable.)";

// An option that takes a value, by all its names: torchrun's too.
struct ValueOption {
  std::string names; // as CLI11 wants them
  std::string type_name;
  std::string summary;
  std::string LaunchWords::*word;
};

const std::vector<ValueOption>& value_options() {
  static const std::vector<ValueOption> options{
      {"-n,--nproc-per-node,--nproc_per_node",
       "N",
       "Number of ranks to start here",
       &LaunchWords::num_ranks},
      {"--max-restarts,--max_restarts",
       "K",
       "How often all ranks start again after one failed [0]",
       &LaunchWords::max_restarts},
      {"--nnodes", "N", "Number of hosts [1]", &LaunchWords::num_nodes},
      {"--node-rank,--node_rank",
       "R",
       "This host's number, from 0 [0]",
       &LaunchWords::node_rank},
      {"--master-addr,--master_addr",
       "HOST",
       "Name or address of host 0",
       &LaunchWords::master_addr},
      {"--master-port,--master_port",
       "PORT",
       "Where the launchers meet on host 0 [29500]",
       &LaunchWords::master_port},
      {"--meet-timeout",
       "SECONDS",
       "How long they wait for each other [300]",
       &LaunchWords::meet_timeout_s},
      {"--node-timeout",
       "SECONDS",
       "How long one may be silent before it is lost [10]",
       &LaunchWords::node_timeout_s}};
  return options;
}

bool takes_value(const std::string& word) {
  return std::any_of(
      value_options().begin(),
      value_options().end(),
      [&](const ValueOption& option) {
        return ("," + option.names + ",").find("," + word + ",") !=
            std::string::npos;
      });
}

// The program and its arguments may look like anything, options and names of
// commands included, so they are never parsed: they begin after "--" or at the
// first word that is neither an option nor the value of one.
std::size_t num_launch_words(const CommandLine& line) {
  std::size_t word = 2;
  while (word < line.size() && line[word] != "--" &&
         line[word].starts_with('-')) {
    word += takes_value(line[word]) ? 2 : 1;
  }
  return std::min(word, line.size());
}

std::vector<std::string> launched_command(const CommandLine& line) {
  auto begin =
      line.begin() + static_cast<std::ptrdiff_t>(num_launch_words(line));
  if (begin != line.end() && *begin == "--") {
    ++begin;
  }
  return {begin, line.end()};
}

int64_t parse_whole(
    const std::string& option,
    const std::string& text,
    int64_t max = std::numeric_limits<int32_t>::max()) {
  int64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value > max) {
    throw ConfigError(fmt::format(
        "[launch] {}: expected a whole number of at most {}, got '{}'",
        option,
        max,
        text));
  }
  return value;
}

uint16_t parse_port(const std::string& text) {
  const auto port =
      parse_whole("--master-port", text, std::numeric_limits<uint16_t>::max());
  return static_cast<uint16_t>(std::max<int64_t>(port, 0)); // 0 is refused
}

int run_launch(const LaunchWords& words, const CommandLine& line) {
  auto options = comm::LaunchOptions(
      parse_whole("-n", words.num_ranks),
      launched_command(line));
  options.max_restarts(parse_whole("--max-restarts", words.max_restarts))
      .num_nodes(parse_whole("--nnodes", words.num_nodes))
      .node_rank(parse_whole("--node-rank", words.node_rank))
      .master_addr(words.master_addr)
      .master_port(parse_port(words.master_port))
      .meet_timeout(std::chrono::seconds(
          parse_whole("--meet-timeout", words.meet_timeout_s)))
      .node_timeout(std::chrono::seconds(
          parse_whole("--node-timeout", words.node_timeout_s)));
  try {
    return comm::launch_local(options).exit_code;
  } catch (const comm::ProgramError& error) {
    std::cerr << "tandem: " << error.what_without_backtrace() << '\n';
    return error.exit_code();
  }
}

std::function<int()> declare_launch(CLI::App& app, const CommandLine& line) {
  const auto words = std::make_shared<LaunchWords>();
  for (const auto& option : value_options()) {
    app.add_option(option.names, (*words).*option.word, option.summary)
        ->type_name(option.type_name);
  }
  app.get_option("-n")->required();
  app.footer(kLaunchFooter);
  return [words, line] { return run_launch(*words, line); };
}

} // namespace

Command launch_command() {
  return {
      "launch",
      "Start N ranks of a program on this host and end them together",
      declare_launch,
      num_launch_words};
}

} // namespace tandem::bench
