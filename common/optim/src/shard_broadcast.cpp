#include "shard_broadcast.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/TensorOptions.h>
#include <c10/util/intrusive_ptr.h>
#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/core/flat_buffer.h>

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

at::Tensor empty_flat(const std::vector<at::Tensor>& tensors) {
  int64_t num_elems = 0;
  for (const auto& tensor : tensors) {
    num_elems += tensor.numel();
  }
  const auto& first = tensors.front();
  return at::empty(
      {num_elems},
      at::TensorOptions().dtype(first.scalar_type()).device(first.device()));
}

void copy_from_flat(
    const at::Tensor& flat,
    const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  int64_t offset_elems = 0;
  for (const auto& tensor : tensors) {
    tensor.copy_(
        flat.narrow(0, offset_elems, tensor.numel()).view(tensor.sizes()));
    offset_elems += tensor.numel();
  }
}

} // namespace tandem::detail
