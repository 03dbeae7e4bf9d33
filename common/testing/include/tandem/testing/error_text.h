#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <tandem/core/errors.h>

namespace tandem::testing {

/// The text of the `Exception` that `function` throws; nothing if it throws
/// none. Other exceptions pass.
template <typename Exception, typename Function>
std::optional<std::string> thrown_text(Function&& function) {
  try {
    function();
  } catch (const Exception&) {
    return message_of(std::current_exception());
  }
  return std::nullopt;
}

/// True if `error` holds an `Exception`; false for null.
template <typename Exception>
bool holds(const std::exception_ptr& error) {
  if (!error) {
    return false;
  }
  try {
    std::rethrow_exception(error);
  } catch (const Exception&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// Those of `parts` that `text` does not contain; empty is good.
std::vector<std::string> missing_parts(
    const std::string& text,
    const std::vector<std::string>& parts);

} // namespace tandem::testing
