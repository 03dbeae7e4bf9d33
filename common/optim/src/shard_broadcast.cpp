#include "shard_broadcast.h"

#include <cstddef>
#include <utility>

#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/flat_buffer.h>

#include "flat_transfer.h"

namespace tandem::detail {

ShardBroadcast::ShardBroadcast(std::vector<std::vector<at::Tensor>> shards) {
  for (size_t rank = 0; rank < shards.size(); ++rank) {
    for (const auto& indices : group_by_type(shards[rank])) {
      Part part{static_cast<int64_t>(rank), {}};
      for (const size_t index : indices) {
        part.parameters.push_back(shards[rank][index]);
      }
      parts_.push_back(std::move(part));
    }
  }
}

void ShardBroadcast::run(comm::ProcessGroup& group) const {
  if (group.size() == 1) {
    return;
  }
  struct Transfer {
    const Part* part;
    at::Tensor flat;
    c10::intrusive_ptr<c10d::Work> work;
  };
  std::vector<Transfer> transfers;
  for (const auto& part : parts_) {
    auto flat = part.rank == group.rank() ? flatten_copy(part.parameters)
                                          : empty_flat(part.parameters);
    if (flat.numel() > 0) {
      // As bytes every dtype can be sent.
      auto work = group.broadcast_async(flat.view(at::kByte), part.rank);
      transfers.push_back({&part, std::move(flat), std::move(work)});
    }
  }
  for (const auto& transfer : transfers) {
    const auto& [part, flat, work] = transfer;
    group.wait(work, fmt::format("broadcast of rank {}'s step", part->rank));
    if (part->rank != group.rank()) {
      copy_from_flat(flat, part->parameters);
    }
  }
}

} // namespace tandem::detail
