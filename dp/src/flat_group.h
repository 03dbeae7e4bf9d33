#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "fingerprint.h"
#include "tensor_table.h"
#include "transfer_counts.h"

namespace tandem::detail {

/// Base tensors of one dtype, and the flat storages of which each further
/// replica's counterparts are views. See Note [Copying a group] in the .cpp.
class FlatGroup {
 public:
  /// Makes the storages, without values, and the replicas' tensors views of
  /// them. `tensors`: indices into `table.base`; `table` outlives this;
  /// `devices` are those of replica 0, 1, ...
  FlatGroup(
      const TensorTable& table,
      const std::vector<at::Device>& devices,
      std::vector<size_t> tensors);

  /// Indices of the base tensors.
  const std::vector<size_t>& tensors() const {
    return tensors_;
  }
  /// Copies the base's values to the replicas; moves no version.
  void copy_values(TransferCounts& counts) const;
  void add_to(Fingerprint& fingerprint) const;

 private:
  /// Tensors that are copied together: these of `tensors_`, one after another.
  struct Piece {
    size_t begin;
    size_t end;
  };

  void plan_pieces();
  void make_storages(const std::vector<at::Device>& devices);
  const at::Tensor& base(size_t position) const;
  std::vector<at::Tensor> parts_of(Piece piece) const;
  void copy_piece(Piece piece, TransferCounts& counts) const;

  const TensorTable& table_;
  std::vector<size_t> tensors_;
  std::vector<int64_t> offsets_elems_;
  int64_t total_elems_;
  std::vector<Piece> pieces_;
  /// `gaps_[n]`: n elements to lie between two tensors, on the first device.
  std::vector<at::Tensor> gaps_;
  /// 1-D, of replica 1, 2, ...
  std::vector<at::Tensor> flats_;
};

} // namespace tandem::detail
