#include "commands.h"

#include <charconv>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tandem/comm/launcher.h>

namespace tandem::bench {

namespace {

constexpr auto kLaunchFooter = R"(
tandem launch -n N [--] program [arguments]

Each rank gets torchrun's variables (RANK, WORLD_SIZE, MASTER_PORT, ...), reads
from /dev/null, and has its lines passed on after "[rank r] ". When one fails,
the others get SIGTERM and 5 s later SIGKILL, and the failure is reported.
SIGINT and SIGTERM are passed on; a second one is SIGKILL at once.

Exit code: 0 if all ranks succeeded, else that of the first one that failed,
128 + signal for a signal; 127 for a program not found, 126 for one that is not
executable.)";

// The program and its arguments may look like anything, options and names of
// commands included, so they are never parsed: they begin after "--" or at the
// first word that is neither an option nor the value of one.
std::size_t num_launch_words(const CommandLine& line) {
  std::size_t word = 2;
  while (word < line.size() && line[word] != "--" &&
         line[word].starts_with('-')) {
    const bool takes_value =
        line[word] == "-n" || line[word] == "--nproc-per-node";
    word += takes_value ? 2 : 1;
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

int64_t parse_num_ranks(const std::string& text) {
  int64_t value = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) {
    throw ConfigError(
        fmt::format("[launch] -n: expected a whole number, got '{}'", text));
  }
  return value;
}

int run_launch(const std::string& num_ranks, const CommandLine& line) {
  const comm::LaunchOptions options(
      parse_num_ranks(num_ranks),
      launched_command(line));
  try {
    return comm::launch_local(options).exit_code;
  } catch (const comm::ProgramError& error) {
    std::cerr << "tandem: " << error.what_without_backtrace() << '\n';
    return error.exit_code();
  }
}

std::function<int()> declare_launch(CLI::App& app, const CommandLine& line) {
  const auto num_ranks = std::make_shared<std::string>();
  app.add_option("-n,--nproc-per-node", *num_ranks, "Number of ranks to start")
      ->required()
      ->type_name("N");
  app.footer(kLaunchFooter);
  return [num_ranks, line] { return run_launch(*num_ranks, line); };
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
