#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace tandem::sim {

/// The CPU tensors over device tensors' bytes that one call of a CPU kernel
/// works on, and the way back: see Note [Kernels of the CPU].
class AliasMap {
 public:
  /// The CPU tensor over `tensor`'s bytes, the same for the same tensor; a CPU
  /// or undefined tensor as it is. `written`: the kernel may write to it.
  at::Tensor to_cpu(const at::Tensor& tensor, bool written);

  /// Carries over what the kernel did to the tensors it wrote to: other sizes,
  /// other storage. To be called before `to_device`.
  void write_back(at::Device device);

  /// The device tensor for one of the kernel's results: an argument, a view of
  /// one, or a new tensor, whose memory is adopted where the kernel allocated
  /// it on `device`.
  at::Tensor to_device(const at::Tensor& result, at::Device device);

 private:
  struct StoragePair {
    c10::Storage device;
    c10::Storage cpu;
    void* data;
  };
  struct TensorPair {
    at::Tensor device;
    at::Tensor cpu;
    bool written;
  };

  at::Tensor alias_strided(const at::Tensor& tensor, bool written);
  at::Tensor alias_sparse(const at::Tensor& tensor, bool written);
  c10::Storage device_storage_of(const at::Tensor& result, at::Device device);
  c10::Storage adopt(const c10::Storage& storage, at::Device device);

  c10::SmallVector<StoragePair, 8> storages_;
  c10::SmallVector<TensorPair, 8> tensors_;
};

} // namespace tandem::sim
