// What tests check of messages.
#pragma once

#include <exception>
#include <string>

namespace tandem::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The text of what `call` throws; empty if it throws nothing.
template <typename Call>
std::string message_thrown_by(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

} // namespace tandem::test
