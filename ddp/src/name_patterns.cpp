#include "name_patterns.h"

#include <algorithm>
#include <iterator>

#include <fnmatch.h>

namespace tandem::detail {

namespace {

bool matches(const std::string& name, const std::string& pattern) {
  return fnmatch(pattern.c_str(), name.c_str(), /*flags=*/0) == 0;
}

} // namespace

bool matches_any(
    const std::string& name,
    const std::vector<std::string>& patterns) {
  return std::any_of(
      patterns.begin(),
      patterns.end(),
      [&](const std::string& pattern) { return matches(name, pattern); });
}

std::vector<std::string> unmatched(
    const std::vector<std::string>& patterns,
    const std::vector<std::string>& names) {
  std::vector<std::string> result;
  std::copy_if(
      patterns.begin(),
      patterns.end(),
      std::back_inserter(result),
      [&](const std::string& pattern) {
        return std::none_of(
            names.begin(),
            names.end(),
            [&](const std::string& name) { return matches(name, pattern); });
      });
  return result;
}

} // namespace tandem::detail
