#pragma once

#include <string>
#include <vector>

namespace tandem::detail {

/// Whether a shell would find `name` by one of `patterns`: `*`, `?`, `[...]`.
bool matches_any(
    const std::string& name,
    const std::vector<std::string>& patterns);

/// The patterns by which none of `names` is found.
std::vector<std::string> unmatched(
    const std::vector<std::string>& patterns,
    const std::vector<std::string>& names);

} // namespace tandem::detail
