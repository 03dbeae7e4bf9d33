#include "statements.h"

#include <algorithm>

#include <c10/util/Exception.h>
#include <nlohmann/json.hpp>

namespace tandem::comm {

std::string format_statements(const std::vector<Statement>& statements) {
  auto list = nlohmann::json::array();
  for (const auto& statement : statements) {
    list.push_back({statement.subject, statement.value});
  }
  return list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<Statement> parse_statements(const std::string& text) {
  const auto list = nlohmann::json::parse(text, nullptr, false);
  TORCH_CHECK(list.is_array(), "statements are garbled: ", text);
  std::vector<Statement> statements;
  for (const auto& pair : list) {
    statements.push_back(
        {pair.at(0).get<std::string>(), pair.at(1).get<std::string>()});
  }
  return statements;
}

std::optional<Difference> first_difference(
    const std::vector<Statement>& left,
    const std::vector<Statement>& right) {
  const auto at = [](const auto& list, size_t i) {
    return i < list.size() ? std::make_optional(list[i]) : std::nullopt;
  };
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const bool same = i < left.size() && i < right.size() &&
        left[i].subject == right[i].subject && left[i].value == right[i].value;
    if (!same) {
      return Difference{at(left, i), at(right, i)};
    }
  }
  return std::nullopt;
}

} // namespace tandem::comm
