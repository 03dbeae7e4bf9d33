#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/Tensor.h>
#include <torch/arg.h>
#include <torch/data/example.h>
#include <torch/nn/module.h>

#include <tandem/core/parallel.h>

namespace tandem {

/// How a wrapper is compared with the bare module.
struct EquivalenceOptions {
  using Batches = std::function<torch::data::Example<>(int64_t step)>;
  using Criterion =
      std::function<at::Tensor(const at::Tensor& output, const at::Tensor&)>;
  using Disturb =
      std::function<void(torch::nn::Module&, int64_t step, int64_t rank)>;

  EquivalenceOptions(Batches batches, Criterion criterion)
      : batches_(std::move(batches)), criterion_(std::move(criterion)) {}

  /// The whole batch of a step, the same on every rank; its rows must be a
  /// multiple of the world size. Take double precision: float hides a wrong
  /// divisor behind rounding.
  TORCH_ARG(Batches, batches);
  /// The mean loss over the rows.
  TORCH_ARG(Criterion, criterion);
  /// Called on both modules before each forward. It may change buffers, on
  /// ranks other than 0 in whatever way: the wrapper has to undo that.
  TORCH_ARG(Disturb, disturb);
  /// Optimizer steps, of SGD with momentum.
  TORCH_ARG(int64_t, steps) = 3;
  TORCH_ARG(double, learning_rate) = 0.1;
  /// Difference from which on something is a mismatch.
  TORCH_ARG(double, tolerance) = 1e-9;
};

/// What was found on this rank.
struct EquivalenceReport {
  /// The largest difference; the largest double if a value is not finite or a
  /// gradient is missing on one side.
  double max_abs_diff = 0;
  /// The first thing that differs by the tolerance or more, for example "step
  /// 2: gradient of 'fc.weight'"; empty if nothing does.
  std::string first_mismatch;
};

namespace detail {

/// `check_equivalence` without the module's type.
struct EquivalenceRun {
  using Forward = std::function<at::Tensor(const at::Tensor&)>;

  torch::nn::Module& reference;
  Forward reference_forward;
  ParallelModule& candidate;
  Forward candidate_forward;
};

EquivalenceReport check_equivalence(
    const EquivalenceRun& run,
    const EquivalenceOptions& options);

} // namespace detail

/// Trains `reference` on whole batches and `candidate`, which wraps a module
/// with the same initial values, on this rank's rows of them (contiguous, in
/// order of ranks), and compares outputs, gradients and parameters at every
/// step. Both are changed by it.
/// **Collective** as `candidate` is.
template <typename M>
EquivalenceReport check_equivalence(
    M& reference,
    Parallel<M>& candidate,
    const EquivalenceOptions& options) {
  return detail::check_equivalence(
      {reference,
       [&](const at::Tensor& input) { return reference.forward(input); },
       candidate,
       [&](const at::Tensor& input) { return candidate.forward(input); }},
      options);
}

} // namespace tandem
