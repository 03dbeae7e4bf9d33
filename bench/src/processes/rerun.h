#pragma once

#include <vector>

#include <tandem/train/results.h>

#include "commands.h"

namespace tandem::bench {

/// Runs this program once more with `arguments` after its name, in a process of
/// its own with the same standard streams, and returns its exit code as a shell
/// would.
/// **Throws** `Error` if the system refuses.
int rerun(const CommandLine& arguments);

/// What a run with `--json` left behind.
struct RerunResults {
  int exit_code = 0;
  /// Empty if it wrote no file.
  std::vector<train::ResultRow> rows;
};

/// Likewise, with `--json` and a temporary file added; returns what it wrote.
RerunResults rerun_for_results(CommandLine arguments);

} // namespace tandem::bench
