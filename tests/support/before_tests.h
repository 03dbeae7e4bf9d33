// What a test binary does before Catch2 starts. The twins are rank_process.cpp
// for binaries that link tandem::testing and no_rank_process.cpp, devices.cpp
// for those with DEVICES and no_devices.cpp.
#pragma once

#include <optional>

namespace tandem::test {

/// Runs the rank function for which `testing::run_processes` started this
/// process. Returns the exit code then, nothing in any other process.
std::optional<int> run_as_rank();

/// Makes the devices that TANDEM_TEST_DEVICES names, where they are to be made
/// before anything else happens.
void start_devices();

} // namespace tandem::test
