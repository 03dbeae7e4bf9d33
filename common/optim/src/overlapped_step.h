#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <tandem/comm/process_group.h>

#include "shard_broadcast.h"

namespace tandem::detail {

/// One step of a sharded optimizer that is taken parameter by parameter, in the
/// same order on every rank.
class OverlappedStep {
 public:
  /// `local` steps this rank's shard. Parameters are sent as soon as about
  /// `chunk_bytes` of them have been stepped.
  OverlappedStep(
      comm::ProcessGroup& group,
      torch::optim::Optimizer& local,
      const std::vector<std::vector<at::Tensor>>& shards,
      int64_t chunk_bytes);

  /// Steps the parameter on its rank. Ignores those that are not shared out.
  /// False if it has been stepped already: nothing was done.
  /// **Collective**.
  bool begin(const at::Tensor& parameter);
  /// Steps the other parameters and waits until every rank has all.
  /// **Collective**.
  void finish();

 private:
  void send_chunk();

  comm::ProcessGroup& group_;
  torch::optim::Optimizer& local_;
  std::vector<std::vector<at::Tensor>> shards_;
  int64_t chunk_bytes_;
  std::unordered_map<const at::TensorImpl*, size_t> owners_;
  std::unordered_set<const at::TensorImpl*> begun_;
  /// Of each rank, stepped but not sent.
  std::vector<std::vector<at::Tensor>> chunk_;
  int64_t chunk_size_bytes_ = 0;
  std::vector<std::unique_ptr<ShardBroadcast>> sent_;
};

} // namespace tandem::detail
