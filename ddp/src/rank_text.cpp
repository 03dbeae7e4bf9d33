#include "rank_text.h"

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>

namespace tandem::detail {

std::string rank_tag(const comm::ProcessGroup& group) {
  return comm::rank_tag("ddp", group.rank(), group.size());
}

std::string quoted_names(
    const std::vector<NamedTensor>& tensors,
    const std::vector<size_t>& indices,
    size_t limit) {
  std::string text;
  for (size_t i = 0; i < indices.size() && i < limit; ++i) {
    text += fmt::format(
        "{}'{}'",
        text.empty() ? "" : ", ",
        tensors[indices[i]].name);
  }
  if (indices.size() > limit) {
    text += fmt::format(" and {} more", indices.size() - limit);
  }
  return text;
}

} // namespace tandem::detail
