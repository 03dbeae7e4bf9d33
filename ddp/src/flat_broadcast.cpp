#include "flat_broadcast.h"

#include <tandem/core/flat_buffer.h>

namespace tandem::detail {

FlatBroadcast::FlatBroadcast(const std::vector<at::Tensor>& tensors) {
  for (const auto& indices : group_by_type(tensors)) {
    auto& group = groups_.emplace_back();
    group.reserve(indices.size());
    for (const size_t index : indices) {
      group.push_back(tensors[index]);
    }
  }
}

void FlatBroadcast::run(
    comm::ProcessGroup& group,
    Counters& counters,
    int64_t root) const {
  for (const auto& tensors : groups_) {
    const auto flat = flatten_copy(tensors);
    if (flat.numel() == 0) {
      continue;
    }
    // As bytes every dtype can be sent.
    auto bytes = flat.view(at::kByte);
    group.broadcast(bytes, root);
    ++counters.collectives;
    counters.bytes_moved += bytes.numel();
    if (group.rank() != root) {
      unflatten_into(flat, tensors);
    }
  }
}

} // namespace tandem::detail
