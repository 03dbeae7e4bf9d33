#pragma once

#include <string>

#include <tandem/testing/rank_processes.h>

namespace tandem::testing::detail {

// How a copy of the test binary learns that it is a rank.
inline constexpr const char* kFunctionVariable = "TANDEM_RANK_FUNCTION";
inline constexpr const char* kArgumentVariable = "TANDEM_RANK_ARGUMENT";
inline constexpr const char* kParentVariable = "TANDEM_RANK_PARENT";
/// The descriptor of its pipe to the test.
inline constexpr int kPipeFd = 3;

/// **Throws** `ConfigError` if there is none of that name.
RankFunction find_rank_function(const std::string& name);

} // namespace tandem::testing::detail
