#include <tandem/comm/rank_tag.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tandem::comm {

std::string rank_tag(const std::string& who, int64_t rank, int64_t size) {
  return fmt::format("[{} rank {}/{}]", who, rank, size);
}

std::string list_ranks(const std::vector<int64_t>& ranks) {
  if (ranks.size() == 1) {
    return fmt::format("rank {}", ranks.front());
  }
  return fmt::format(
      "ranks {} and {}",
      fmt::join(ranks.begin(), ranks.end() - 1, ", "),
      ranks.back());
}

} // namespace tandem::comm
