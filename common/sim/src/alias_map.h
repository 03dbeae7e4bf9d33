#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "hazards.h"
#include "operator_signature.h"

namespace tandem::sim {

/// The CPU tensors over device tensors' bytes that one call of a CPU kernel
/// works on, and the way back: see Note [Kernels of the CPU].
class AliasMap {
 public:
  /// The CPU tensor over `tensor`'s bytes, the same for the same tensor; a CPU
  /// or undefined tensor as it is.
  at::Tensor to_cpu(const at::Tensor& tensor, Access access);

  /// What the kernel does to the memory of the device tensors.
  BlockUses argument_uses() const;

  /// Carries over what the kernel did to the tensors it wrote to: other sizes,
  /// other storage. To be called before `to_device`.
  void write_back(at::Device device);

  /// The device tensor for one of the kernel's results: an argument, a view of
  /// one, or a new tensor, whose memory is adopted where the kernel allocated
  /// it on `device`.
  at::Tensor to_device(const at::Tensor& result, at::Device device);

  /// The memory that the kernel allocated for results.
  BlockUses result_uses() const;

 private:
  struct StoragePair {
    c10::Storage device;
    c10::Storage cpu;
    void* data;
    /// Allocated by the kernel.
    bool is_new;
  };
  struct TensorPair {
    at::Tensor device;
    at::Tensor cpu;
    Access access;
  };

  at::Tensor alias_strided(const at::Tensor& tensor, Access access);
  at::Tensor alias_sparse(const at::Tensor& tensor, Access access);
  c10::Storage device_storage_of(const at::Tensor& result, at::Device device);
  c10::Storage adopt(const c10::Storage& storage, at::Device device);

  c10::SmallVector<StoragePair, 8> storages_;
  c10::SmallVector<TensorPair, 8> tensors_;
};

} // namespace tandem::sim
