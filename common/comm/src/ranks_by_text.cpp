#include "ranks_by_text.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/comm/rank_tag.h>

namespace tandem::comm {

namespace {

constexpr std::ptrdiff_t kRanksInMessage = 8;

} // namespace

std::vector<RanksOfText> ranks_by_text(
    const std::map<int64_t, std::string>& texts) {
  std::vector<RanksOfText> groups;
  for (const auto& entry : texts) {
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
          return group.text == entry.second;
        });
    if (known == groups.end()) {
      groups.push_back({entry.second, {entry.first}});
    } else {
      known->ranks.push_back(entry.first);
    }
  }
  return groups;
}

std::string list_some_ranks(const std::vector<int64_t>& ranks) {
  const auto more = std::ssize(ranks) - kRanksInMessage;
  if (more <= 0) {
    return list_ranks(ranks);
  }
  return fmt::format(
      "ranks {} and {} more",
      fmt::join(ranks.begin(), ranks.begin() + kRanksInMessage, ", "),
      more);
}

} // namespace tandem::comm
