#include "program.h"

#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <torch/version.h>
#include <CLI/CLI.hpp>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

// The command that `line` names, if it begins with one and not with an option.
// CLI11 by itself would call a mistyped command an unexpected argument.
const Command* find_command(
    const CommandLine& line,
    const std::vector<Command>& commands) {
  if (line.size() < 2 || line[1].starts_with('-')) {
    return nullptr;
  }
  std::string names;
  for (const auto& command : commands) {
    if (command.name == line[1]) {
      return &command;
    }
    names += (names.empty() ? "" : ", ") + command.name;
  }
  throw ConfigError(
      fmt::format("command: expected one of {}, got '{}'", names, line[1]));
}

std::string one_line_failure(const CLI::App* app, const CLI::Error& error) {
  std::string name = app->get_name();
  for (const auto* subcommand : app->get_subcommands()) {
    name += " " + subcommand->get_name();
  }
  return fmt::format("{}: {} (see {} --help)\n", name, error.what(), name);
}

// An exit code if the line was all: help, version, or a mistake.
std::optional<int> parse(CLI::App& app, const CommandLine& words) {
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageExitCode;
  }
  return std::nullopt;
}

} // namespace

int run_program(const CommandLine& line) {
  CLI::App app("Data-parallel training for LibTorch in C++.", "tandem");
  app.set_version_flag(
      "--version",
      fmt::format("tandem {} (LibTorch {})", TANDEM_VERSION, TORCH_VERSION));
  app.failure_message(one_line_failure);
  std::function<int()> chosen = [&app] {
    std::cout << app.help();
    return kUsageExitCode;
  };
  const auto commands = all_commands();
  for (const auto& command : commands) {
    auto* const subcommand = app.add_subcommand(command.name, command.summary);
    subcommand->callback(
        [&chosen, run = command.declare(*subcommand, line)] { chosen = run; });
  }
  const auto* const command = find_command(line, commands);
  auto own_words = line;
  if (command != nullptr && command->num_own_words) {
    own_words.resize(command->num_own_words(line));
  }
  if (const auto code = parse(app, own_words)) {
    return *code;
  }
  return chosen();
}

} // namespace tandem::bench
