#include "shard_broadcast.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/flat_buffer.h>

#include "flat_transfer.h"

namespace tandem::detail {

ShardBroadcast::ShardBroadcast(
    const std::vector<std::vector<at::Tensor>>& shards) {
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    for (const auto& indices : group_by_type(shards[rank])) {
      Part part{static_cast<int64_t>(rank), {}, {}, {}};
      for (const size_t index : indices) {
        part.parameters.push_back(shards[rank][index]);
      }
      parts_.push_back(std::move(part));
    }
  }
}

void ShardBroadcast::start(comm::ProcessGroup& group) {
  if (group.size() == 1) {
    return;
  }
  for (auto& part : parts_) {
    auto flat = part.rank == group.rank() ? flatten_copy(part.parameters)
                                          : empty_flat(part.parameters);
    if (flat.numel() > 0) {
      // As bytes every dtype can be sent.
      part.work = group.broadcast_async(flat.view(at::kByte), part.rank);
      part.flat = std::move(flat);
    }
  }
}

void ShardBroadcast::finish(comm::ProcessGroup& group) {
  for (auto& part : parts_) {
    const auto flat = std::exchange(part.flat, at::Tensor());
    if (!flat.defined()) {
      continue;
    }
    group.wait(
        std::exchange(part.work, nullptr),
        fmt::format("broadcast of rank {}'s step", part.rank));
    if (part.rank != group.rank()) {
      copy_from_flat(flat, part.parameters);
    }
  }
}

} // namespace tandem::detail
