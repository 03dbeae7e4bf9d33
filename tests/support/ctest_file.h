// The ctest entries of a test binary.
#pragma once

#include <string>
#include <vector>

namespace tandem::test {

struct Case {
  std::string title;
  std::vector<std::string> tags;
};

/// Writes to `path` the script that ctest includes: one entry for each case,
/// named "<part>: <title>". Returns an exit code.
int write_ctest_file(
    const std::string& path,
    const std::string& binary,
    const std::string& part,
    const std::vector<std::string>& labels,
    const std::vector<Case>& cases);

} // namespace tandem::test
