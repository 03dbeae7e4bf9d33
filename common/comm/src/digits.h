#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::comm {

/// `text` if it is decimal digits and nothing else, and at most `max`.
std::optional<int64_t> parse_digits(const std::string& text, int64_t max);

} // namespace tandem::comm
