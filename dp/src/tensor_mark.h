#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>

namespace tandem::detail {

/// Version and place of a tensor's values at one moment: what tells most writes
/// without reading the values.
class TensorMark {
 public:
  explicit TensorMark(const at::Tensor& tensor);

  /// Whether `tensor` has that version and lies there still. Memory that was
  /// freed and allocated again is another place.
  bool fits(const at::Tensor& tensor) const;
  bool has_version_of(const at::Tensor& tensor) const;

 private:
  int64_t version_;
  /// Does not keep the values; keeps another storage from having its address.
  c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  const void* data_;
};

} // namespace tandem::detail
