#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// How every message of a rank begins: "[ddp rank 1/4]" for `who` "ddp".
std::string rank_tag(const std::string& who, int64_t rank, int64_t size);

/// "rank 2", "ranks 1, 2 and 5". `ranks` is not empty.
std::string list_ranks(const std::vector<int64_t>& ranks);

} // namespace tandem::comm
