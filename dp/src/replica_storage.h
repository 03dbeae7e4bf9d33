#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "tensor_table.h"
#include "transfer_counts.h"

namespace tandem::detail {

/// Keeps the tensors of each replica as views into one flat storage per dtype
/// (buffers apart), and copies the base's values there. See Note [Refresh] in
/// the .cpp.
class ReplicaStorage {
 public:
  /// Replaces the data of the replicas' tensors: device, dtype, strides and
  /// values are the base's from then on. `table` outlives this; `devices` are
  /// those of replica 0, 1, ...
  ReplicaStorage(
      const TensorTable& table,
      std::vector<at::Device> devices,
      std::shared_ptr<TransferCounts> counts);

  /// Copies buffers and, if asked to or if dtype or strides of a base tensor
  /// changed, parameters.
  void refresh(bool with_parameters);

 private:
  /// Tensors of one dtype, all parameters or all buffers.
  struct Group {
    std::vector<size_t> tensors;
    bool are_buffers;
    /// What follows each tensor to keep the next one aligned.
    std::vector<int64_t> padding_elems;
    /// 1-D, of replica 1, 2, ...
    std::vector<at::Tensor> flats;
  };

  void build();
  Group build_group(std::vector<size_t> tensors);
  bool fits_base() const;
  void copy_values(const Group& group);
  void mirror_versions(const Group& group);

  const TensorTable& table_;
  std::vector<at::Device> devices_;
  std::shared_ptr<TransferCounts> counts_;
  std::vector<Group> groups_;
  /// Of each base tensor, when its replicas were refreshed last.
  std::vector<int64_t> versions_;
};

} // namespace tandem::detail
