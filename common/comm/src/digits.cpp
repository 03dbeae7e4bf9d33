#include "digits.h"

#include <charconv>

namespace tandem::comm {

std::optional<int64_t> parse_digits(const std::string& text, int64_t max) {
  int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.front() == '-' ||
      number > max) {
    return std::nullopt;
  }
  return number;
}

} // namespace tandem::comm
