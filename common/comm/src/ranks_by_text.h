#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem::comm {

/// The ranks that say the same.
struct RanksOfText {
  std::string text;
  std::vector<int64_t> ranks;
};

/// In the order of the groups' first ranks.
std::vector<RanksOfText> ranks_by_text(
    const std::map<int64_t, std::string>& texts);

/// As `list_ranks`, "ranks 0, 1, 2 and 61 more" where there are many.
std::string list_some_ranks(const std::vector<int64_t>& ranks);

} // namespace tandem::comm
