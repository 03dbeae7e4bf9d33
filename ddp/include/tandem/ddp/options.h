#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  /// Where the module is and inputs go. Default: the process group's device; or,
  /// for a module that lies on several devices of its type, wherever forward
  /// moves them.
  TORCH_ARG(std::optional<at::Device>, device);
  /// A bucket is reduced as soon as its gradients reach this size. Larger:
  /// fewer, faster transfers; smaller: they start earlier during backward.
  TORCH_ARG(int64_t, bucket_cap_bytes) = int64_t(25) << 20;
  /// The same for the first bucket, which holds the last layers: small, so that
  /// communication starts early. A quarter of Python's: a small network's
  /// gradients would else all be in one bucket, sent when backward is over.
  TORCH_ARG(int64_t, first_bucket_bytes) = int64_t(256) << 10;
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
  /// A parameter that a backward does not reach, on some ranks or on all, counts
  /// as one with a gradient of zeros; where no rank reached it, its gradient is
  /// left as it is. Costs a walk through the graph in forward and one small
  /// all-reduce on the CPU. False: such a parameter is an error.
  TORCH_ARG(bool, find_unused_parameters) = false;
  /// Every step uses the same parameters, each equally often. They are learned
  /// in the first step, whose reduction starts after backward, so no search is
  /// needed for unused ones, and parameters may be reached several times in one
  /// backward, as reentrant checkpoints do. A step that differs is an error
  /// naming the parameter. One backward per forward.
  TORCH_ARG(bool, static_graph) = false;
  /// Rank 0's parameters and buffers are copied to all ranks at construction.
  /// False: for ranks that are known to hold the same.
  TORCH_ARG(bool, init_sync) = true;
  /// With `find_unused_parameters`: buckets that no rank's forward reaches are
  /// not sent. Costs a wait for one small all-reduce at the start of backward.
  TORCH_ARG(bool, skip_all_reduce_unused_params) = false;
  /// Names of parameters and buffers that stay each rank's own: not compared,
  /// copied or averaged, whether they are alike or not. `*`, `?` and `[...]`
  /// match as in a shell.
  TORCH_ARG(std::vector<std::string>, params_and_buffers_to_ignore);
  /// Parameters, likewise, whose gradients are sent after all others'.
  TORCH_ARG(std::vector<std::string>, delay_all_reduce_params);
  /// Parameters, likewise, whose gradients are sparse; those of `Embedding` and
  /// `EmbeddingBag` with `sparse(true)` are found without. Ranks send each other
  /// their rows, at the end of backward, and get the same sparse mean.
  TORCH_ARG(std::vector<std::string>, sparse_params);
  /// `kMean`, or `kSum` for gradients that are added up, not averaged. Gradients
  /// that were reduced before and accumulate are then added up again.
  TORCH_ARG(comm::ReduceOp, reduce_op) = comm::ReduceOp::kMean;
  /// What gradients are divided by before they are summed; after it, by the rest
  /// of the divisor. Default: the whole divisor before. Smaller values keep small
  /// gradients in half precision from vanishing, larger ones the sum from
  /// overflowing.
  TORCH_ARG(std::optional<double>, gradient_predivide_factor);
  /// Half and bfloat16 gradients are summed in float: twice the bytes, and a
  /// copy in place of views.
  TORCH_ARG(bool, reduce_in_float) = false;
  /// Every so many synchronised forwards the ranks compare a checksum of their
  /// parameters and a hash of their collectives; a difference is an error on all
  /// that names the first parameter and the ranks. 0: never. Nothing is compared
  /// inside a `Join` and with communication hooks that let ranks differ.
  TORCH_ARG(int64_t, divergence_check_every) = 100;
  /// Default: `comm::default_group()`, the thread's, else the process's.
  TORCH_ARG(std::shared_ptr<comm::ProcessGroup>, process_group);
  /// Runs the whole machinery in a world of one too, where by default nothing
  /// is installed: for tests on one GPU.
  TORCH_ARG(bool, reduce_at_world_one) = false;
  TORCH_ARG(ErrorCheck, error_check) = ErrorCheck::kEveryStep;
};

} // namespace tandem
