#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <torch/arg.h>
#include <torch/nn/module.h>

#include <tandem/core/buffer_policy.h>

namespace tandem {

/// When replicas receive the wrapped module's parameters. Buffers are copied at
/// every forward (see `BufferPolicy`), but for `no_sync()`: a stretch of it is for accumulation, in
/// which parameters must not change, and under `kChecked` and `kVersions`
/// nothing is copied after its first forward.
enum class RefreshPolicy {
  /// Unless nothing can have changed since the last copy: no backward through
  /// the wrapper, the same version counters and addresses, and the same bytes
  /// by a 64-bit fingerprint. Always right, but for a chance of 2^-64. The
  /// fingerprint reads all parameters once, on the first device, and is taken
  /// only where no backward has come between two forwards.
  kChecked,
  /// At every forward: always right.
  kAlways,
  /// As `kChecked` without the fingerprint. A write that moves no version, with
  /// no backward since the last copy, is not seen: a step of
  /// `torch::optim::SGD` on gradients from elsewhere; writes through `data()`,
  /// `variable_data()` or pointers.
  kVersions,
  /// Only by `refresh()`: for loops that are known not to change parameters. A
  /// step without `refresh()` computes with old parameters on all devices but
  /// the first.
  kManual,
};

/// Makes a module of the wrapped module's type and configuration; values,
/// dtypes, training flags and `requires_grad` are then set by the wrapper.
using ReplicaFactory =
    std::function<std::shared_ptr<torch::nn::Module>(at::Device)>;

/// Example:
/// `DataParallelOptions().device_ids({0, 1}).bucket_cap_bytes(4 << 20)`
struct DataParallelOptions {
  /// Devices of the replicas; the wrapped module is on the first. Default: all
  /// CUDA devices. `{torch::kCPU, torch::kCPU}` runs two replicas without a
  /// GPU.
  DataParallelOptions& devices(std::vector<at::Device> devices) {
    devices_ = std::move(devices);
    return *this;
  }
  const std::optional<std::vector<at::Device>>& devices() const {
    return devices_;
  }

  /// Short for `devices` with these CUDA indices.
  DataParallelOptions& device_ids(std::vector<int64_t> ids) {
    device_ids_ = std::move(ids);
    return *this;
  }
  const std::optional<std::vector<int64_t>>& device_ids() const {
    return device_ids_;
  }

  /// Where outputs are gathered. Default: the first device. Another one takes
  /// the loss's memory off the first device.
  TORCH_ARG(std::optional<at::Device>, output_device);

  /// The batch dimension of inputs and outputs, not negative.
  TORCH_ARG(int64_t, dim) = 0;

  /// Makes the replicas of a module whose `clone(device)` is missing or wrong
  /// (a plain `torch::nn::Module`, `ParameterList`, unregistered tensors).
  /// Called once per further device, on the thread that wraps.
  TORCH_ARG(ReplicaFactory, replica_factory);

  /// When replicas receive parameters; a copy takes all of them to each further
  /// device.
  TORCH_ARG(RefreshPolicy, refresh_policy) = RefreshPolicy::kChecked;

  /// What becomes of the buffers that the replicas' forwards change (BatchNorm's
  /// statistics). But for `kNone`, replicas receive the wrapped module's at
  /// every forward; `kNone` leaves them what they had at construction or at the
  /// last `refresh()`, changed by their own forwards.
  TORCH_ARG(BufferPolicy, buffer_policy) = BufferPolicy::kFirst;

  /// Allows a device other than the CPU to appear more than once, which is of
  /// use in tests on one GPU; its replicas share it and are not faster.
  TORCH_ARG(bool, allow_duplicate_devices) = false;

  /// Gradients go to the first device in buckets that close at this size, as
  /// soon as a bucket is complete. Smaller: earlier overlap with backward,
  /// more copies.
  TORCH_ARG(int64_t, bucket_cap_bytes) = int64_t{25} << 20;

 private:
  std::optional<std::vector<at::Device>> devices_;
  std::optional<std::vector<int64_t>> device_ids_;
};

} // namespace tandem
