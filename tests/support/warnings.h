// What LibTorch and Tandem warn about while a test runs. A warning that no test
// expected fails the process.
#pragma once

#include <string>

namespace tandem::test {

/// From now on a warning on this thread that contains `words` is expected.
void expect_warning(const std::string& words);

/// How often expected warnings that contain `words` have come.
int count_warnings(const std::string& words);

/// Catches the calling thread's warnings until the process ends.
void watch_warnings();

/// Prints the unexpected warnings; true if there were any.
bool report_unexpected_warnings();

} // namespace tandem::test
