#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tandem/dp/data_parallel_options.h>

#include "replica_storage.h"
#include "transfer_counts.h"

namespace tandem::detail {

/// Copies to the replicas what a forward needs. See Note [Never a stale weight]
/// in the .cpp.
class RefreshControl {
 public:
  RefreshControl(
      const DataParallelOptions& options,
      std::shared_ptr<const TransferCounts> counts);

  /// To be called before each forward of replicas. `no_sync_stretch`: as
  /// `ParallelModule::no_sync_stretch()`.
  void before_forward(
      ReplicaStorage& storage,
      std::optional<int64_t> no_sync_stretch);
  /// Copies everything, whatever the policy.
  void force(ReplicaStorage& storage);

 private:
  Transfers choose(
      const ReplicaStorage& storage,
      std::optional<int64_t> no_sync_stretch);
  bool is_accumulating(std::optional<int64_t> no_sync_stretch);
  bool may_have_changed(const ReplicaStorage& storage, bool is_certain);
  void copy(ReplicaStorage& storage, Transfers transfers);

  RefreshPolicy policy_;
  /// Whether forwards start from equal buffers everywhere.
  bool sends_buffers_;
  std::shared_ptr<const TransferCounts> counts_;
  /// A copy threw: the replicas' values are unknown.
  bool is_copy_broken_ = false;
  /// When parameters were copied last.
  int64_t gradient_buckets_ = 0;
  /// Of the parameters that were copied last, where it was taken.
  std::optional<int64_t> fingerprint_;
  /// That of the last forward.
  std::optional<int64_t> no_sync_stretch_;
};

} // namespace tandem::detail
