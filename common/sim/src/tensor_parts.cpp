#include "tensor_parts.h"

#include <ATen/SparseTensorImpl.h>

#include "allocators.h"

namespace tandem::sim {

namespace {

at::SparseTensorImpl& sparse_impl(const at::Tensor& tensor) {
  return *static_cast<at::SparseTensorImpl*>(tensor.unsafeGetTensorImpl());
}

} // namespace

at::Tensor strided_over(
    c10::Storage storage,
    const at::Tensor& like,
    c10::DispatchKey key) {
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage),
      c10::DispatchKeySet(key),
      like.dtype());
  auto* const impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(
      like.sizes(),
      like.strides(),
      like.storage_offset());
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) {
    impl->set_wrapped_number(true);
  }
  if (like.is_conj()) {
    impl->_set_conj(true);
  }
  if (like.is_neg()) {
    impl->_set_neg(true);
  }
  return tensor;
}

c10::Storage alias_of(const c10::Storage& storage, bool written) {
  auto* const impl = storage.unsafeGetStorageImpl();
  // The first access that writes ends a lazy copy's sharing.
  void* const data = written && impl->nbytes() > 0
      ? impl->mutable_data()
      : impl->_mutable_data_ptr_no_checks().get();
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      impl->nbytes(),
      c10::DataPtr(data, at::kCPU),
      &host_allocator(),
      /*resizable=*/true);
}

at::Tensor cpu_view_of(const at::Tensor& tensor, bool written) {
  if (!tensor.is_privateuseone()) {
    return tensor;
  }
  return strided_over(
      alias_of(tensor.storage(), written),
      tensor,
      c10::DispatchKey::CPU);
}

at::Tensor lasting_cpu_view_of(const at::Tensor& tensor) {
  auto* const owner = new c10::Storage(tensor.storage());
  c10::DataPtr pointer(
      owner->mutable_data(),
      owner,
      [](void* storage) { delete static_cast<c10::Storage*>(storage); },
      at::kCPU);
  return strided_over(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(),
          tensor.storage().nbytes(),
          std::move(pointer),
          /*allocator=*/nullptr,
          /*resizable=*/false),
      tensor,
      c10::DispatchKey::CPU);
}

at::Tensor sparse_of(
    const at::Tensor& indices,
    const at::Tensor& values,
    const at::Tensor& like,
    c10::DispatchKey key) {
  auto tensor = at::detail::make_tensor<at::SparseTensorImpl>(
      c10::DispatchKeySet(key),
      like.dtype());
  set_sparse(tensor, indices, values, like);
  return tensor;
}

void set_sparse(
    const at::Tensor& tensor,
    const at::Tensor& indices,
    const at::Tensor& values,
    const at::Tensor& like) {
  auto& impl = sparse_impl(tensor);
  const auto& model = sparse_impl(like);
  impl.raw_resize_(model.sparse_dim(), model.dense_dim(), like.sizes());
  impl.set_indices_and_values_unsafe(indices, values);
  impl.set_coalesced(model.coalesced());
}

const at::Tensor& indices_of(const at::Tensor& sparse) {
  return sparse_impl(sparse).indices_;
}

const at::Tensor& values_of(const at::Tensor& sparse) {
  return sparse_impl(sparse).values_;
}

} // namespace tandem::sim
