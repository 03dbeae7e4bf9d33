#include <tandem/testing/error_text.h>

#include <algorithm>
#include <iterator>

namespace tandem::testing {

std::vector<std::string> missing_parts(
    const std::string& text,
    const std::vector<std::string>& parts) {
  std::vector<std::string> missing;
  std::copy_if(
      parts.begin(),
      parts.end(),
      std::back_inserter(missing),
      [&](const auto& part) { return text.find(part) == std::string::npos; });
  return missing;
}

} // namespace tandem::testing
