#include "storage_bytes.h"

namespace tandem::detail {

int64_t StorageBytes::add(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return 0;
  }
  if (tensor.is_sparse()) {
    return add(tensor._indices()) + add(tensor._values());
  }
  if (!tensor.has_storage() ||
      !seen_.insert(tensor.storage().unsafeGetStorageImpl()).second) {
    return 0;
  }
  return static_cast<int64_t>(tensor.storage().nbytes());
}

} // namespace tandem::detail
