// Runs the program `tandem` for a test.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tandem/train/results.h>

namespace tandem::bench::test {

/// Variables of a launcher, which the test's own environment must not lend.
extern const std::vector<std::string> kRankVariables;

struct Ended {
  int code = 0;
  std::string out;
  std::string err;
  /// What `--json` wrote; empty if nothing.
  std::vector<train::ResultRow> rows;
};

/// Runs `tandem <arguments> --json FILE` to its end.
Ended run_for_results(std::vector<std::string> arguments);

/// Runs `tandem <arguments>` to its end.
Ended run_tandem(std::vector<std::string> arguments);

} // namespace tandem::bench::test
