#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <tandem/ddp/options.h>

namespace tandem::test {

/// `find_unused_parameters`, with gradients as views and as copies.
std::vector<DistributedDataParallelOptions> with_unused();
/// `static_graph`, likewise.
std::vector<DistributedDataParallelOptions> with_static_graph();
/// Every combination of the two and views.
std::vector<DistributedDataParallelOptions> all_flags();

/// How messages name a rank: "rank 1/2".
std::string rank_text(size_t rank, size_t world_size);

} // namespace tandem::test
