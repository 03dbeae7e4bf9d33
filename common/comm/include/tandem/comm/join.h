#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/arg.h>

#include <tandem/comm/process_group.h>

namespace tandem::comm {

class Join;

/// All ranks give the same values.
struct JoinOptions {
  /// False: everything runs as without `Join`, for inputs known to be even.
  TORCH_ARG(bool, enable) = true;
  /// When the first rank has no input left every rank throws `PeerError`, all
  /// after equally many iterations, instead of going on without it. For what
  /// collectives of the caller's own make impossible to shadow.
  TORCH_ARG(bool, throw_on_early_termination) = false;
  /// What gradients are divided by: all ranks, so that each input counts the
  /// same over the whole training; or those that have inputs left.
  TORCH_ARG(bool, divide_by_initial_world_size) = true;
};

/// What a rank that has joined, having no input left, does for one `Joinable`.
class JoinHook {
 public:
  JoinHook() = default;
  virtual ~JoinHook() = default;
  JoinHook(const JoinHook&) = delete;
  JoinHook& operator=(const JoinHook&) = delete;

  /// Takes part in the collectives of one iteration of the ranks that have
  /// inputs, in their order, without changing the result.
  virtual void main_hook() {}

  /// Called once on every rank when all have joined. `is_last_joiner` on those
  /// that joined last: they made the final result.
  virtual void post_hook(bool /*is_last_joiner*/) {}
};

/// Something that issues collectives in every iteration: a wrapper, an
/// optimizer. Before the first of an iteration's it calls `Join::notify`.
class Joinable {
 public:
  Joinable() = default;
  virtual ~Joinable() = default;
  Joinable(const Joinable&) = delete;
  Joinable& operator=(const Joinable&) = delete;

  virtual std::unique_ptr<JoinHook> join_hook(const JoinOptions& options) = 0;
  virtual std::shared_ptr<ProcessGroup> join_process_group() const = 0;

 private:
  friend class Join;

  /// The one that it is part of now.
  Join* join_ = nullptr;
};

/// Lets ranks with different numbers of inputs train together: a rank that has
/// none left takes part in the others' collectives until all are through.
///
/// 1. The joinables share a process group; in an iteration their collectives
///    come in the order of the list, and every joinable has its turn.
/// 2. The first one of the list tells the others that this rank goes on; that
///    is one small all-reduce per iteration.
/// 3. An object that is destroyed without `finish` (an exception passed) leaves
///    the others waiting: their collectives fail at the time limit.
///
/// **Collective**: construction and `finish`. The joinables outlive it.
/// **Source**: PyTorch's `torch.distributed.algorithms.Join`.
///
/// Example:
/// ```cpp
/// tandem::comm::Join join({&*model, &optimizer});
/// for (const auto& batch : *loader) {
///   train_on(batch);
/// }
/// join.finish();
/// ```
class Join {
 public:
  /// **Throws** `ConfigError` if there is no joinable, one is part of another
  /// `Join`, or their groups differ.
  explicit Join(
      std::vector<Joinable*> joinables,
      const JoinOptions& options = {});
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  /// This rank has no input left. Returns when all ranks have called it.
  /// **Throws** `PeerError` with `throw_on_early_termination` unless all ranks
  /// call it after equally many iterations; what hooks throw.
  void finish();

  /// Tells the ranks that have joined that `joinable` begins an iteration here.
  /// Does nothing outside a `Join`, and for all but its first joinable.
  /// **Throws** `PeerError` with `throw_on_early_termination` if a rank has
  /// joined.
  static void notify(Joinable& joinable);

  /// The options of the `Join` that `joinable` is part of; null outside one, or
  /// if it is not enabled.
  static const JoinOptions* options_of(const Joinable& joinable);

 private:
  void start_iteration();
  void shadow();
  int64_t sum(int64_t own, const char* what);
  void detach() noexcept;

  std::vector<Joinable*> joinables_;
  JoinOptions options_;
  std::shared_ptr<ProcessGroup> group_;
  std::vector<std::unique_ptr<JoinHook>> hooks_;
  /// The count of ranks that is on its way, if any.
  at::Tensor count_; // [1]
  c10::intrusive_ptr<c10d::Work> counting_;
};

/// Runs `body` inside a `Join`, and `finish` after it unless it throws.
/// **Collective**. **Throws** as `body` and `Join`.
void with_join(
    std::vector<Joinable*> joinables,
    const std::function<void()>& body,
    const JoinOptions& options = {});

} // namespace tandem::comm
