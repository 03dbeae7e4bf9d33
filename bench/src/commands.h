#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace CLI { // NOLINT(readability-identifier-naming)
class App;
} // namespace CLI

namespace tandem::bench {

/// The words that the program was called with, its own name first; for the
/// JSON's "command" and for commands that start the program again as ranks.
using CommandLine = std::vector<std::string>;

/// Exit code of a mistake in the command line or the environment
/// (`ConfigError`); other exceptions end the program with 1.
inline constexpr int kUsageExitCode = 2;

/// One subcommand of `tandem`. To add one: a function that returns it, declared
/// below and defined in `<name>_command.cpp`, and a line in `all_commands`.
struct Command {
  std::string name;
  /// One line for `tandem --help`.
  std::string summary;
  /// Declares options on the subcommand's `app` and returns what runs after
  /// they were parsed; its result is the program's exit code. What it throws
  /// is printed by `main` as one line.
  std::function<std::function<int()>(CLI::App& app, const CommandLine& line)>
      declare;
  /// How many of the line's words are this program's; the others belong to the
  /// command alone. Absent: all.
  std::function<std::size_t(const CommandLine& line)> num_own_words = nullptr;
};

/// In the order in which `tandem --help` lists them.
std::vector<Command> all_commands();

Command train_command();
Command verify_command();
Command demo_command();
Command bench_command();
Command launch_command();
Command doctor_command();

} // namespace tandem::bench
