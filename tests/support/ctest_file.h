// The ctest entries of a test binary.
#pragma once

#include <string>
#include <vector>

namespace tandem::test {

struct Case {
  std::string title;
  std::vector<std::string> tags;
};

/// The binary whose cases are entered, and how.
struct CtestFile {
  std::string path;
  std::string binary;
  std::string part;
  /// Kinds of devices to run on, see devices.h; at least one.
  std::vector<std::string> kinds;
  /// Labels of all entries, beside part, kind and tags.
  std::vector<std::string> labels;
};

/// Writes the script that ctest includes: one entry for each case and kind of
/// device, named "<part>: <title>", or "<part> on <kind>: <title>" for another
/// kind than the CPU. A case with tags [only-<kind>] has no entry for other
/// kinds. Returns an exit code.
int write_ctest_file(const CtestFile& file, const std::vector<Case>& cases);

} // namespace tandem::test
