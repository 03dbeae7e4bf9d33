#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Device.h>

#include "flat_group.h"
#include "tensor_mark.h"
#include "tensor_table.h"
#include "transfer_counts.h"

namespace tandem::detail {

/// What the replicas are to receive.
struct Transfers {
  bool parameters = true;
  bool buffers = true;
};

/// Keeps the tensors of each replica as views into one flat storage per dtype
/// (buffers apart), and copies the base's values there. See Note [Versions of
/// replicas] in the .cpp.
class ReplicaStorage {
 public:
  /// Replaces the data of the replicas' tensors: device, dtype, strides and
  /// values are the base's from then on. `table` outlives this; `devices` are
  /// those of replica 0, 1, ...
  ReplicaStorage(
      const TensorTable& table,
      std::vector<at::Device> devices,
      std::shared_ptr<TransferCounts> counts);

  /// Copies what is asked for; everything if dtype or strides of a base tensor
  /// changed.
  void refresh(Transfers transfers);

  /// Whether a parameter of the base has another version, or lies elsewhere,
  /// than when it was copied last.
  bool have_parameters_moved() const;
  /// Of the base's parameters as they are now.
  int64_t fingerprint_parameters() const;

 private:
  void build();
  bool fits_base() const;
  void copy(const std::vector<FlatGroup>& groups);
  void mirror_versions(const FlatGroup& group);

  const TensorTable& table_;
  std::vector<at::Device> devices_;
  std::shared_ptr<TransferCounts> counts_;
  std::vector<FlatGroup> parameters_;
  std::vector<FlatGroup> buffers_;
  /// Of each base tensor, when it was copied last.
  std::vector<TensorMark> marks_;
};

} // namespace tandem::detail
