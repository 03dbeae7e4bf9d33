#include <tandem/comm/env_reader.h>

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "digits.h"

namespace tandem::comm {

namespace {

bool is_control(unsigned char c) {
  return c < 0x20 || c == 0x7f;
}

/// `value` in quotes and on one line, whatever it holds.
std::string quoted_value(const std::string& value) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    text +=
        is_control(byte) ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return "'" + text + "'";
}

[[noreturn]] void throw_bad_variable(
    const std::string& name,
    const std::optional<std::string>& value,
    const std::string& rule) {
  throw ConfigError(fmt::format(
      "{}: expected {}, got {}",
      name,
      rule,
      value ? quoted_value(*value) : "nothing (it is not set)"));
}

} // namespace

std::optional<std::string> process_env(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

bool EnvReader::has(const std::string& name) const {
  return lookup_(name).has_value();
}

std::string EnvReader::text(const std::string& name, const std::string& rule)
    const {
  const auto value = lookup_(name);
  const auto is_bad = [](char c) {
    return c == ' ' || is_control(static_cast<unsigned char>(c));
  };
  if (!value || value->empty() ||
      std::any_of(value->begin(), value->end(), is_bad)) {
    throw_bad_variable(name, value, rule);
  }
  return *value;
}

int64_t EnvReader::number(
    const std::string& name,
    int64_t min,
    int64_t max,
    const std::string& rule) const {
  const auto value = lookup_(name);
  const auto number = value ? parse_digits(*value, max) : std::nullopt;
  if (!number || *number < min) {
    throw_bad_variable(name, value, rule);
  }
  return *number;
}

void EnvReader::reject(const std::string& name, const std::string& rule) const {
  throw_bad_variable(name, lookup_(name), rule);
}

} // namespace tandem::comm
