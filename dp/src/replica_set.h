#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <torch/nn/module.h>

#include <tandem/dp/data_parallel_options.h>

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
      const ReplicaFactory& factory,
      std::shared_ptr<TransferCounts> counts);
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  /// Brings buffers, parameters if asked to, and training flags of the replicas
  /// to the base's.
  /// **Throws** `ConfigError` if a base tensor has left the first device, or a
  /// module of the base's tree was added, replaced or removed.
  void refresh(bool with_parameters);

  const std::vector<std::shared_ptr<torch::nn::Module>>& modules() const {
    return modules_;
  }
  const TensorTable& tensors() const {
    return tensors_;
  }

 private:
  using ModulePtr = std::shared_ptr<torch::nn::Module>;

  /// A module of the base's tree and those that stand for it.
  struct Counterparts {
    std::string name;
    ModulePtr base;
    /// The base's children when it was wrapped.
    std::vector<ModulePtr> children;
    /// In replica 1, 2, ...
    std::vector<ModulePtr> replicas;
  };

  void match_modules();
  void check_same_children() const;
  void copy_training_flags();

  std::vector<at::Device> devices_;
  std::vector<ModulePtr> modules_;
  /// Parents before children.
  std::vector<Counterparts> counterparts_;
  TensorTable tensors_;
  /// None for a single device.
  std::optional<ReplicaStorage> storage_;
};

} // namespace tandem::detail
