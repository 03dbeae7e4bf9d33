#pragma once

#include "commands.h"

namespace tandem::bench {

/// Parses `line`, runs the command that it names, and returns the program's
/// exit code. Mistakes in the line itself are told on stderr, in one line.
/// **Throws** what the command throws.
int run_program(const CommandLine& line);

} // namespace tandem::bench
