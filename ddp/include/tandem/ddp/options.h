#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <c10/core/Device.h>
#include <torch/arg.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/buffer_policy.h>

namespace tandem {

/// When a backend that works asynchronously (NCCL) is asked whether a step's
/// all-reduces succeeded. Gloo always answers at once.
enum class ErrorCheck {
  /// Before `backward()` returns: no optimizer step ever sees the gradients of
  /// a failed reduction. The host waits for the device once per step.
  kEveryStep,
  /// At the end of the next backward: the host runs ahead of the device, and
  /// one step may have been taken with wrong gradients when the error comes.
  kNextStep,
};

/// All ranks must give the same values (`device`'s index and `error_check`
/// apart); they are compared at construction.
struct DistributedDataParallelOptions {
  /// Where the module is and inputs go. Default: the process group's device.
  TORCH_ARG(std::optional<at::Device>, device);
  /// A bucket is reduced as soon as its gradients reach this size. Larger:
  /// fewer, faster transfers; smaller: they start earlier during backward.
  TORCH_ARG(int64_t, bucket_cap_bytes) = int64_t(25) << 20;
  /// The same for the first bucket, which holds the last layers: small, so that
  /// communication starts early.
  TORCH_ARG(int64_t, first_bucket_bytes) = int64_t(1) << 20;
  /// Gradients are views into the buckets: saves one copy of all gradients in
  /// memory and one pass over them per step. Code that replaces `grad()` by
  /// another tensor still works, at the cost of that pass.
  TORCH_ARG(bool, gradient_as_bucket_view) = true;
  /// What becomes of buffers (BatchNorm's statistics). But for `kNone`, rank
  /// 0's are copied to all ranks before each forward with grad mode and
  /// synchronisation on; `kMerge` merges the statistics after it. Nothing is
  /// sent under `NoGradGuard`, `InferenceMode` or `no_sync`, so ranks may
  /// evaluate unequal numbers of batches; what rank 0 alone made of its buffers
  /// under `no_sync` is what the next synchronised forward starts from.
  TORCH_ARG(BufferPolicy, buffer_policy) = BufferPolicy::kFirst;

 public:
  /// Python's name for the choice between `kFirst` and `kNone`.
  DistributedDataParallelOptions& broadcast_buffers(bool on) {
    return buffer_policy(on ? BufferPolicy::kFirst : BufferPolicy::kNone);
  }
  /// Default: `comm::default_group()`, the thread's, else the process's.
  TORCH_ARG(std::shared_ptr<comm::ProcessGroup>, process_group);
  /// Runs the whole machinery in a world of one too, where by default nothing
  /// is installed: for tests on one GPU.
  TORCH_ARG(bool, reduce_at_world_one) = false;
  TORCH_ARG(ErrorCheck, error_check) = ErrorCheck::kEveryStep;
};

} // namespace tandem
