// What a test binary does before Catch2 starts; its twins are rank_process.cpp
// for binaries that link tandem::testing, and no_rank_process.cpp.
#pragma once

#include <optional>

namespace tandem::test {

/// Runs the rank function for which `testing::run_processes` started this
/// process. Returns the exit code then, nothing in any other process.
std::optional<int> run_as_rank();

} // namespace tandem::test
