#include "alias_map.h"

#include <algorithm>
#include <cstring>

#include <tandem/core/errors.h>

#include "allocators.h"
#include "block.h"
#include "runtime.h"
#include "tensor_parts.h"

namespace tandem::sim {

namespace {

void* data_of(const c10::Storage& storage) {
  return storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
}

bool same_storage(const c10::Storage& left, const c10::Storage& right) {
  return left.unsafeGetStorageImpl() == right.unsafeGetStorageImpl();
}

c10::Storage make_storage(c10::DataPtr pointer, size_t num_bytes) {
  return c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(),
      num_bytes,
      std::move(pointer),
      &device_allocator(),
      /*resizable=*/true);
}

/// The bytes of a CPU storage in memory of `device`: the same block if that
/// was counted on it, else a copy. What then is left behind points to the
/// device's bytes and owns nothing.
c10::DataPtr take_bytes(const c10::Storage& storage, at::Device device) {
  auto& memory = Runtime::get().device(device.index()).memory;
  auto* const impl = storage.unsafeGetStorageImpl();
  auto& pointer = impl->_mutable_data_ptr_no_checks();
  if (owner_of(pointer) == &memory) {
    void* const data = pointer.get();
    auto taken = impl->set_data_ptr(c10::DataPtr(data, at::kCPU));
    return relabel(std::move(taken), device);
  }
  auto copy = allocate_block(&memory, impl->nbytes(), device);
  if (impl->nbytes() > 0) {
    std::memcpy(copy.get(), pointer.get(), impl->nbytes());
  }
  return copy;
}

bool same_geometry(const at::Tensor& left, const at::Tensor& right) {
  return left.sizes() == right.sizes() && left.strides() == right.strides() &&
      left.storage_offset() == right.storage_offset();
}

} // namespace

at::Tensor AliasMap::to_cpu(const at::Tensor& tensor, Access access) {
  if (!tensor.defined() || !tensor.is_privateuseone()) {
    return tensor;
  }
  for (auto& pair : tensors_) {
    if (pair.device.is_same(tensor)) {
      pair.access = std::max(pair.access, access);
      return pair.cpu;
    }
  }
  auto cpu = tensor.layout() == at::kSparse ? alias_sparse(tensor, access)
                                            : alias_strided(tensor, access);
  tensors_.push_back({tensor, cpu, access});
  return cpu;
}

at::Tensor AliasMap::alias_strided(const at::Tensor& tensor, Access access) {
  if (tensor.layout() != at::kStrided) {
    throw ShapeError(
        "tensor on " + tensor.device().str() +
        ": expected layout Strided or Sparse, got " +
        c10::str(tensor.layout()) + ". Move it to the CPU first");
  }
  const auto& storage = tensor.storage();
  for (const auto& pair : storages_) {
    if (same_storage(pair.device, storage)) {
      return strided_over(pair.cpu, tensor, c10::DispatchKey::CPU);
    }
  }
  auto alias = alias_of(storage, access == Access::kWrite);
  storages_.push_back({storage, alias, data_of(storage), false});
  return strided_over(std::move(alias), tensor, c10::DispatchKey::CPU);
}

at::Tensor AliasMap::alias_sparse(const at::Tensor& tensor, Access access) {
  const auto indices = to_cpu(indices_of(tensor), access);
  const auto values = to_cpu(values_of(tensor), access);
  return sparse_of(indices, values, tensor, c10::DispatchKey::SparseCPU);
}

void AliasMap::write_back(at::Device device) {
  for (auto& pair : storages_) {
    auto* const impl = pair.device.unsafeGetStorageImpl();
    const auto num_bytes = pair.cpu.nbytes();
    if (data_of(pair.cpu) != pair.data) {
      impl->set_data_ptr_noswap(take_bytes(pair.cpu, device));
      pair.data = data_of(pair.cpu);
      pair.is_new = true;
    }
    if (impl->nbytes() != num_bytes) {
      impl->set_nbytes(num_bytes);
    }
  }
  for (const auto& pair : tensors_) {
    if (pair.access != Access::kWrite) {
      continue;
    }
    if (pair.device.is_sparse()) {
      set_sparse(
          pair.device,
          to_device(indices_of(pair.cpu), device),
          to_device(values_of(pair.cpu), device),
          pair.cpu);
    } else if (!same_geometry(pair.device, pair.cpu)) {
      pair.device.unsafeGetTensorImpl()->set_sizes_and_strides(
          pair.cpu.sizes(),
          pair.cpu.strides(),
          pair.cpu.storage_offset());
    }
  }
}

at::Tensor AliasMap::to_device(const at::Tensor& result, at::Device device) {
  if (!result.defined() || !result.is_cpu()) {
    return result;
  }
  for (const auto& pair : tensors_) {
    if (pair.cpu.is_same(result)) {
      return pair.device;
    }
  }
  if (result.is_sparse()) {
    return sparse_of(
        to_device(indices_of(result), device),
        to_device(values_of(result), device),
        result,
        c10::DispatchKey::SparsePrivateUse1);
  }
  if (result.layout() != at::kStrided) {
    throw ShapeError(
        "result on " + device.str() +
        ": expected layout Strided or Sparse, got " +
        c10::str(result.layout()) + ". Compute it on the CPU");
  }
  return strided_over(
      device_storage_of(result, device),
      result,
      c10::DispatchKey::PrivateUse1);
}

c10::Storage AliasMap::device_storage_of(
    const at::Tensor& result,
    at::Device device) {
  const auto& storage = result.storage();
  for (const auto& pair : storages_) {
    if (same_storage(pair.cpu, storage)) {
      return pair.device;
    }
  }
  return adopt(storage, device);
}

c10::Storage AliasMap::adopt(const c10::Storage& storage, at::Device device) {
  auto adopted = make_storage(take_bytes(storage, device), storage.nbytes());
  storages_.push_back({adopted, storage, data_of(storage), true});
  return adopted;
}

BlockUses AliasMap::argument_uses() const {
  BlockUses uses;
  for (const auto& pair : tensors_) {
    if (pair.access != Access::kNone) {
      append_use(
          uses,
          pair.device,
          pair.access == Access::kWrite ? UseKind::kWrite : UseKind::kRead);
    }
  }
  return uses;
}

BlockUses AliasMap::result_uses() const {
  BlockUses uses;
  for (const auto& pair : storages_) {
    if (pair.is_new) {
      append_use(uses, pair.device, UseKind::kWrite);
    }
  }
  return uses;
}

} // namespace tandem::sim
