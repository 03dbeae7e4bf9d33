#include "text.h"

#include <fmt/format.h>

namespace tandem::comm {

std::string format_limit(std::chrono::milliseconds limit) {
  return limit.count() % 1000 == 0 ? fmt::format("{} s", limit.count() / 1000)
                                   : fmt::format("{} ms", limit.count());
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string first_sentence(const std::string& text) {
  auto line = first_line(text);
  const auto place = line.find("] ");
  if (line.starts_with("[/") && place != std::string::npos) {
    line.erase(0, place + 2);
  }
  return line.substr(0, line.find(". "));
}

} // namespace tandem::comm
