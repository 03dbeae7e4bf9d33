#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

/// All-reduce in two levels: within blocks of consecutive ranks, such as those
/// of one host, then among the first ranks of the blocks, then back into the
/// blocks. Less travels between blocks than in one all-reduce over all ranks,
/// where a block's ranks are near to each other and the blocks are not.
///
/// **Threads** as `ProcessGroup`.
class HierarchicalGroup {
 public:
  /// `block_size` ranks of `world` make a block.
  /// **Collective** over `world`.
  /// **Throws** `ConfigError` unless `block_size` divides the world size; else
  /// as `new_group`.
  HierarchicalGroup(ProcessGroup& world, int64_t block_size);

  /// Combines the values of all ranks of the world, in place. The order of
  /// additions is another than in `ProcessGroup::all_reduce`; all ranks get the
  /// same bits.
  /// **Collective** over the world. **Throws** as `ProcessGroup::all_reduce`.
  void all_reduce(at::Tensor& tensor, ReduceOp op = ReduceOp::kSum);

  /// This rank's block.
  const std::shared_ptr<ProcessGroup>& block() const {
    return block_;
  }
  /// The first ranks of all blocks; null on the other ranks.
  const std::shared_ptr<ProcessGroup>& leaders() const {
    return leaders_;
  }

 private:
  std::shared_ptr<ProcessGroup> block_;
  std::shared_ptr<ProcessGroup> leaders_;
};

} // namespace tandem::comm
