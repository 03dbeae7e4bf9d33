#pragma once

#include <cstdint>
#include <unordered_set>

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>

namespace tandem::detail {

/// Adds up what tensors occupy, each storage once.
class StorageBytes {
 public:
  /// The bytes of `tensor` that were not counted before; 0 if it is undefined.
  int64_t add(const at::Tensor& tensor);

 private:
  std::unordered_set<const c10::StorageImpl*> seen_;
};

} // namespace tandem::detail
