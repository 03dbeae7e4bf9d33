// Catch2 2.13 and 3.x under one include. Tests use what both have, 3.x's name
// ContainsSubstring, and TANDEM_SKIP, since 2.13 has no SKIP.
#pragma once

#include <string>

// Its CHECK comes before Catch2's, which is then the one that tests see.
#include <c10/util/Logging.h>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define TANDEM_CATCH_VERSION 3
#else
#ifndef CATCH_CONFIG_CONSOLE_WIDTH
#define CATCH_CONFIG_CONSOLE_WIDTH 100
#endif
#include <catch2/catch.hpp>
#define TANDEM_CATCH_VERSION 2

namespace Catch::Matchers {

// NOLINTNEXTLINE(readability-identifier-naming): 3.x's name
inline auto ContainsSubstring(const std::string& part) {
  return Contains(part);
}

} // namespace Catch::Matchers
#endif

namespace tandem::test {

/// Notes that the running case cannot be judged on this machine. Its process
/// exits with kSkippedExitCode, which ctest reports as not run.
void note_skip(const std::string& reason);

inline constexpr int kSkippedExitCode = 77;

} // namespace tandem::test

/// Leaves the test case at once; ctest reports it as not run. Valid only in
/// the case's own function.
#define TANDEM_SKIP(reason)            \
  do {                                 \
    ::tandem::test::note_skip(reason); \
    return;                            \
  } while (false)
