#pragma once

#include <chrono>
#include <string>

namespace tandem::comm {

/// "60 s", or "1500 ms" where seconds are not whole.
std::string format_limit(std::chrono::milliseconds limit);

/// `text` up to its first line break: c10d's errors bring a stack trace.
std::string first_line(const std::string& text);

/// What a transport's error says first, without the place in its source and
/// its advice.
std::string first_sentence(const std::string& text);

} // namespace tandem::comm
