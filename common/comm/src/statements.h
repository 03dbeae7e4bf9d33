#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <tandem/comm/agreement.h>

namespace tandem::comm {

/// Statements as one text that `parse_statements` reads back, whatever
/// characters they hold.
std::string format_statements(const std::vector<Statement>& statements);

/// **Throws** `c10::Error` if `text` was not made by `format_statements`.
std::vector<Statement> parse_statements(const std::string& text);

/// What two ranks say where they first differ, in order; nothing for a rank
/// whose list has ended.
struct Difference {
  std::optional<Statement> left;
  std::optional<Statement> right;
};

std::optional<Difference> first_difference(
    const std::vector<Statement>& left,
    const std::vector<Statement>& right);

} // namespace tandem::comm
