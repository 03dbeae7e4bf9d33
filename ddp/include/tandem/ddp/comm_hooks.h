#pragma once

#include <cstdint>
#include <memory>

#include <torch/arg.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/process_group.h>

/// Communication hooks that come with Tandem. Each result serves one wrapper;
/// all ranks must register alike ones.
///
/// Sparse gradients are not compressed by any of them, complex ones by none but
/// `noop_hook`, which sends nothing at all.
/// **Source**: `torch.distributed.algorithms.ddp_comm_hooks`
namespace tandem::ddp {

using CommHookPtr = std::shared_ptr<comm::CommHook>;

/// The mean over the ranks, as without a hook.
CommHookPtr all_reduce_hook();

/// Sends nothing: each rank keeps its own gradients, not divided by anything.
/// For measuring what communication costs, or reducing by hand after backward.
CommHookPtr noop_hook();

/// Hands float and double gradients to `inner` in half precision and takes its
/// result back to their own dtype: a half or a quarter of the bytes. Values
/// beyond 65,504 become infinite, those below 6e-8 zero. Default for `inner`:
/// `all_reduce_hook()`, which divides before it sums, so that the sum does not
/// overflow.
CommHookPtr fp16_compress_hook(CommHookPtr inner = nullptr);

/// The same in bfloat16: float's range with 8 bits of precision. The backend
/// must be able to sum bfloat16, as Gloo and NCCL from Ampere on can.
CommHookPtr bf16_compress_hook(CommHookPtr inner = nullptr);

struct PowerSGDOptions {
  /// Columns of the two factors that stand for a gradient. More: closer to the
  /// mean, more bytes and time. Usually 1 to 4.
  TORCH_ARG(int64_t, matrix_approximation_rank) = 1;
  /// Reductions before the first compressed one; until then, plain means.
  /// Early gradients change much, so about a tenth of the training. At least 2
  /// with error feedback or warm start, whose memory must not outlive a change
  /// of buckets after the first backward.
  TORCH_ARG(int64_t, start_iteration) = 1000;
  /// A gradient [n, m] is compressed if this times (n + m) * rank is less than
  /// n * m; vectors never are.
  TORCH_ARG(double, min_compression_rate) = 2;
  /// Adds what compression left out to the next gradients: without it training
  /// may not converge. Costs memory for one more copy of the gradients.
  TORCH_ARG(bool, use_error_feedback) = true;
  /// Starts from the last step's factors in place of random ones: closer, and
  /// cheaper. Costs memory for the factors.
  TORCH_ARG(bool, warm_start) = true;
  /// Added to norms that are divided by. Columns of zeros stay zero at 0 too.
  TORCH_ARG(double, orthogonalization_epsilon) = 0;
  /// Of the random factors, which are the same on every rank.
  TORCH_ARG(int64_t, random_seed) = 0;
  /// Compresses each bucket as one square matrix in place of every gradient by
  /// itself: faster, but much less accurate; for ranks above 1 hardly of use.
  TORCH_ARG(bool, batched) = false;
};

/// Sends low-rank factors P and Q of each gradient M, so that P Q^T is near the
/// ranks' mean of M. P starts during backward, Q follows after it.
/// **Throws** `ConfigError` for options outside of their ranges.
/// **Source**: Vogels, Karimireddy, Jaggi: "PowerSGD", NeurIPS 2019
CommHookPtr power_sgd_hook(const PowerSGDOptions& options = {});

struct TopKOptions {
  /// Part of each bucket's elements that are sent, those of largest magnitude:
  /// above 0 and at most 1. One at least.
  TORCH_ARG(double, ratio) = 0.01;
  /// Adds what was not sent to the next gradients: without it training may not
  /// converge. Costs memory for one more copy of the gradients.
  TORCH_ARG(bool, use_error_feedback) = true;
};

/// Sends each rank's largest elements with their places; others count as zero
/// in the mean. What travels grows with the world: ratios of more than
/// 1 / (2 * world size) save nothing.
/// **Throws** `ConfigError` for options outside of their ranges.
/// **Source**: Stich, Cordonnier, Jaggi: "Sparsified SGD with Memory", NeurIPS
/// 2018
CommHookPtr top_k_hook(const TopKOptions& options = {});

struct PostLocalSGDOptions {
  /// Reductions before the first local one; until then, means over all ranks.
  TORCH_ARG(int64_t, start_step) = 100;
  /// The ranks, this one among them, whose mean is taken from then on: those of
  /// a host. None: each rank keeps its own gradients.
  TORCH_ARG(std::shared_ptr<comm::ProcessGroup>, subgroup) = nullptr;
};

/// The mean over all ranks at first, then over few or none, for training that
/// averages the parameters from time to time: see `PostLocalSGDOptimizer`.
/// **Throws** `ConfigError` if `start_step` is below 0.
/// **Source**: Lin, Stich, Patel, Jaggi: "Don't Use Large Mini-Batches, Use
/// Local SGD", ICLR 2020
CommHookPtr post_local_sgd_hook(const PostLocalSGDOptions& options = {});

} // namespace tandem::ddp
