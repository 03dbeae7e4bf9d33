#include "tensor_mark.h"

namespace tandem::detail {

namespace {

int64_t version_of(const at::Tensor& tensor) {
  return tensor.is_inference() ? 0 : tensor._version();
}

} // namespace

TensorMark::TensorMark(const at::Tensor& tensor)
    : version_(version_of(tensor)),
      storage_(tensor.storage().getWeakStorageImpl()),
      data_(tensor.const_data_ptr()) {}

bool TensorMark::fits(const at::Tensor& tensor) const {
  return has_version_of(tensor) && data_ == tensor.const_data_ptr() &&
      storage_._unsafe_get_target() == tensor.storage().unsafeGetStorageImpl();
}

bool TensorMark::has_version_of(const at::Tensor& tensor) const {
  return version_ == version_of(tensor);
}

} // namespace tandem::detail
