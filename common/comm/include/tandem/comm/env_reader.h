#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tandem::comm {

/// Looks a variable up; nothing if it is not set.
using EnvLookup =
    std::function<std::optional<std::string>(const std::string& name)>;

/// Looks variables up in the process's environment.
std::optional<std::string> process_env(const std::string& name);

/// Reads variables and checks them. A `rule` says what a value must be; it is
/// the "expected" of the error.
///
/// **Throws** `ConfigError` naming the variable, its value and the rule, in one
/// line.
class EnvReader {
 public:
  /// `lookup` must outlive the reader.
  explicit EnvReader(const EnvLookup& lookup) : lookup_(lookup) {}

  bool has(const std::string& name) const;

  /// A value that is not empty, without spaces and control characters.
  std::string text(const std::string& name, const std::string& rule) const;

  /// Decimal digits and nothing else.
  int64_t number(
      const std::string& name,
      int64_t min,
      int64_t max,
      const std::string& rule) const;

  /// **Throws** the error for a value that breaks another rule.
  [[noreturn]] void reject(const std::string& name, const std::string& rule)
      const;

 private:
  const EnvLookup& lookup_;
};

} // namespace tandem::comm
