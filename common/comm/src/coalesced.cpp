#include <tandem/comm/coalesced.h>

#include <tandem/core/bucket_plan.h>
#include <tandem/core/flat_buffer.h>

namespace tandem::comm {

namespace {

/// Tensors of one dtype and device.
void broadcast_alike(
    ProcessGroup& group,
    const std::vector<at::Tensor>& tensors,
    int64_t root,
    int64_t buffer_bytes) {
  std::vector<BucketItem> items;
  for (const auto& tensor : tensors) {
    items.push_back({.bytes = static_cast<int64_t>(tensor.nbytes())});
  }
  for (const auto& indices : plan_buckets(items, {buffer_bytes})) {
    std::vector<at::Tensor> parts;
    for (const auto index : indices) {
      parts.push_back(tensors[index]);
    }
    const auto flat = flatten_copy(parts);
    // As bytes every dtype can be sent.
    auto bytes = flat.view(at::kByte);
    group.broadcast(bytes, root);
    if (group.rank() != root) {
      unflatten_into(flat, parts);
    }
  }
}

} // namespace

void broadcast_coalesced(
    ProcessGroup& group,
    const std::vector<at::Tensor>& tensors,
    int64_t root,
    int64_t buffer_bytes) {
  for (const auto& indices : group_by_type(tensors)) {
    std::vector<at::Tensor> alike;
    for (const auto index : indices) {
      alike.push_back(tensors[index]);
    }
    broadcast_alike(group, alike, root, buffer_bytes);
  }
}

} // namespace tandem::comm
