#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <tandem/core/detail/registration_check.h>
#include <tandem/dp/data_parallel_options.h>

#include "refresh_control.h"
#include "replica_storage.h"
#include "tensor_table.h"
#include "transfer_counts.h"

namespace tandem::detail {

/// The wrapped module and its replicas, one per device.
class ReplicaSet {
 public:
  /// **Throws** `ConfigError` if `base` is not on the first device or cannot be
  /// replicated.
  ReplicaSet(
      const std::shared_ptr<torch::nn::Module>& base,
      std::vector<at::Device> devices,
      const DataParallelOptions& options,
      const std::shared_ptr<TransferCounts>& counts);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  /// Brings training flags, buffers, and parameters as the policy says, of the
  /// replicas to the base's. `no_sync_stretch`: as
  /// `ParallelModule::no_sync_stretch()`.
  /// **Throws** `ConfigError` if a base tensor has left the first device, or a
  /// parameter, buffer or module was added, replaced or removed.
  void before_forward(std::optional<int64_t> no_sync_stretch);
  /// The same, with all values whatever the policy.
  void refresh();

  const std::vector<std::shared_ptr<torch::nn::Module>>& modules() const {
    return modules_;
  }
  const TensorTable& tensors() const {
    return tensors_;
  }

 private:
  using ModulePtr = std::shared_ptr<torch::nn::Module>;

  /// A module of the base's tree and those that stand for it in replica 1, 2,
  /// ...
  struct Counterparts {
    ModulePtr base;
    std::vector<ModulePtr> replicas;
  };

  /// What exists where there are replicas to keep.
  struct Upkeep {
    RegistrationCheck registrations;
    ReplicaStorage storage;
    RefreshControl control;
  };

  void match_modules();
  void check_base() const;
  void copy_training_flags();

  std::vector<at::Device> devices_;
  std::vector<ModulePtr> modules_;
  /// Parents before children.
  std::vector<Counterparts> counterparts_;
  TensorTable tensors_;
  std::optional<Upkeep> upkeep_;
};

} // namespace tandem::detail
