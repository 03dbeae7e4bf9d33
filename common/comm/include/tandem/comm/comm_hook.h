#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/grad_bucket.h>
#include <tandem/comm/process_group.h>
#include <tandem/comm/tensor_future.h>
#include <tandem/core/named_tensors.h>

namespace tandem::comm {

/// What a hook has sent since it was attached.
struct HookTraffic {
  int64_t num_buckets = 0;
  /// What this rank's gradients would have taken.
  int64_t bytes_uncompressed = 0;
  /// What this rank handed to collectives in their place.
  int64_t bytes_sent = 0;
};

/// Reduces gradients in a wrapper's place, bucket by bucket.
///
/// 1. `run` starts a bucket's reduction while backward runs; `finish` ends it
///    after backward. Both come in index order, the same on every rank, so
///    either may start collectives; what runs in between, on a future's
///    thread, may not.
/// 2. Buckets hold the gradients as backward made them. The mean over the ranks
///    is the hook's business.
/// 3. A hook serves one wrapper, from its registration on.
///
/// **Threads**: the wrapper calls one method at a time; `traffic` and
/// `describe` may be called at any time.
/// **Source**: `torch.distributed.algorithms.ddp_comm_hooks`, `CommHookInterface`
class CommHook {
 public:
  CommHook() = default;
  virtual ~CommHook() = default;
  CommHook(const CommHook&) = delete;
  CommHook& operator=(const CommHook&) = delete;

  /// As PyTorch calls it: "fp16_compress".
  virtual std::string name() const = 0;
  /// The name and every option that all ranks must choose alike.
  virtual std::string configuration() const;
  /// For people: the configuration and what has been saved.
  virtual std::string describe() const;

  /// Whether every rank gets the same gradients, so that their parameters stay
  /// equal.
  virtual bool keeps_ranks_equal() const {
    return true;
  }

  /// Takes up service with a wrapper's group and the parameters that it
  /// reduces, on all ranks or on none.
  /// **Collective**, through the store.
  /// **Throws** `ConfigError` if it has done so before, is unfit for them, or
  /// the ranks' configurations differ; `PeerError` where another rank's hook is
  /// unfit.
  void attach(
      const std::shared_ptr<ProcessGroup>& group,
      const std::vector<NamedTensor>& parameters);
  /// The part of it that a hook calls which wraps this one: this rank's own.
  void attach_locally(
      const std::shared_ptr<ProcessGroup>& group,
      const std::vector<NamedTensor>& parameters);

  /// Starts the reduction of `bucket`, which lives until it is collected.
  virtual TensorFuture run(GradBucket& bucket) = 0;
  /// Makes the result of what `run`'s future gave: the buffer's dtype and size.
  /// Default: that itself.
  virtual at::Tensor finish(GradBucket& bucket, const at::Tensor& reduced);

  /// What becomes the gradients, once the future is there: `finish`'s result.
  /// **Throws** what the future failed with; `ShapeError` if the result has not
  /// the shape, dtype and device that the bucket was made with.
  at::Tensor collect(GradBucket& bucket, const TensorFuture& future);

  HookTraffic traffic() const;

 protected:
  /// Says what is unfit for this hook; `group()` is there already.
  /// **Throws** `ConfigError`.
  virtual void check(const std::vector<NamedTensor>& parameters);

  ProcessGroup& group() const;
  const std::shared_ptr<ProcessGroup>& shared_group() const {
    return group_;
  }
  /// Counts one bucket, and what was sent beyond it.
  void count(int64_t bytes_uncompressed, int64_t bytes_sent);
  void count_sent(int64_t bytes);

 private:
  std::shared_ptr<ProcessGroup> group_;
  std::atomic<int64_t> num_buckets_ = 0;
  std::atomic<int64_t> bytes_uncompressed_ = 0;
  std::atomic<int64_t> bytes_sent_ = 0;
};

/// A user's function as a hook.
class FunctionHook : public CommHook {
 public:
  using Function = std::function<TensorFuture(GradBucket&)>;

  /// **Throws** `ConfigError` if `function` is empty.
  explicit FunctionHook(Function function, std::string name = "function");

  std::string name() const override;
  /// Nobody knows.
  bool keeps_ranks_equal() const override {
    return false;
  }
  TensorFuture run(GradBucket& bucket) override;

 private:
  Function function_;
  std::string name_;
};

} // namespace tandem::comm
