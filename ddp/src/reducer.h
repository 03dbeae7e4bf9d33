#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/ddp/logging_data.h>
#include <tandem/ddp/options.h>

#include "bucket_order.h"
#include "bucket_queue.h"
#include "firing_counts.h"
#include "gradient_hooks.h"
#include "gradient_scale.h"
#include "gradient_use.h"
#include "gradient_weight.h"
#include "module_tensors.h"
#include "reduction_log.h"
#include "stream_order.h"
#include "synced_forward.h"

namespace tandem::detail {

/// Averages gradients over the ranks while backward runs. See Note [Reduction]
/// and Note [Unused parameters].
///
/// **Owns** hooks on the parameters' accumulators while it lives.
/// **Threads**: hooks may come from several threads at once.
class Reducer : public std::enable_shared_from_this<Reducer> {
 public:
  /// `tensors` outlives the reducer.
  Reducer(
      std::shared_ptr<comm::ProcessGroup> group,
      const ModuleTensors& tensors,
      const DistributedDataParallelOptions& options);

  /// To be called before each forward with grad mode on. `gradient_sync`:
  /// its backward is to be reduced. Returns whether there is anything to reduce;
  /// if so, `weigh` and `watch` follow.
  /// **Collective** with `gradient_sync`, once, when buckets are made anew.
  /// **Throws** `ConfigError` naming the parameters that got no gradient in the
  /// last reduction, or that were converted or unfrozen since construction.
  bool prepare_forward(bool gradient_sync);

  /// How much the gradients count of the forward that follows; null: as much as
  /// any other rank's.
  void weigh(std::shared_ptr<GradientWeight> weight);

  /// Marks the output of that forward, so that its backward is reduced, whenever
  /// and however often it runs.
  void watch(const std::vector<at::Tensor>& outputs);

  /// Lets `hook` reduce what lies in buckets.
  /// **Collective**. **Throws** `ConfigError` after the first reduction has
  /// begun, if there is a hook already, or as `CommHook::attach`.
  void register_hook(std::shared_ptr<comm::CommHook> hook);

  /// Takes part in a reduction of the other ranks without adding anything or
  /// changing a gradient, since this rank has no input left: in place of
  /// `prepare_forward`, and of backward. **Collective**.
  /// `prepare_shadow` returns whether there is anything to reduce.
  bool prepare_shadow();
  void shadow();

  /// Calls `function` with the index of each parameter whose gradient was
  /// reduced, as soon as it is there.
  void set_on_reduced(std::function<void(size_t)> function);

  std::string describe() const;
  Counters counters() const;
  DDPLoggingData logging_data() const;

 private:
  void start_reduction();
  void rearm(const std::shared_ptr<SyncedForward>& forward);
  void on_gradient(size_t index, bool is_defined);
  bool is_last_gradient(size_t index);
  void begin_backward();

  void store_known_unused();
  void skip_unreached_buckets();
  void store_rest();
  void store(size_t index);
  void store_unused(size_t index);
  void set_ready(size_t index);

  void finish(int task);
  void finish_reduction(bool is_whole);
  void hand_over(const Bucket& bucket);
  void hand_over(size_t index, const at::Tensor& view);
  void reduce_sparse();

  bool is_frozen(size_t index) const;
  bool is_only_forward() const;
  bool needs_answers() const;
  bool is_view(size_t index) const;
  const at::Tensor& view_of(size_t index) const;
  GradientScale scale() const;
  GradientScale scale_of(const SyncedForward& forward) const;

  void recover();
  void restart();
  void forget_marks(bool is_whole);
  void follow_parameters();
  void rebuild(const std::vector<size_t>& order);
  std::string message_for_missing_parameters() const;
  std::string describe_times() const;

  std::shared_ptr<comm::ProcessGroup> group_;
  const ModuleTensors& tensors_;
  DistributedDataParallelOptions options_;
  mutable std::mutex mutex_;
  ReductionLog log_;
  BucketQueue queue_;
  std::vector<GradientSlot> slots_;
  BucketOrder order_;
  bool has_rebuilt_ = false;
  StreamOrder streams_;
  Counters counters_;

  /// Null unless parameters may be unused.
  std::unique_ptr<GradientUse> use_;
  /// Null unless the graph is static.
  std::unique_ptr<FiringCounts> firings_;

  /// The forward whose gradients arrive, and all that were made.
  std::shared_ptr<SyncedForward> forward_;
  std::vector<std::weak_ptr<SyncedForward>> forwards_;

  /// Whether gradients that arrive are to be reduced.
  bool armed_ = false;
  /// A hook threw: the rest of this backward is not reduced.
  bool broken_ = false;
  std::vector<bool> is_ready_;
  size_t num_ready_ = 0;
  /// Without a gradient in this reduction; in the last one.
  std::vector<size_t> unused_;
  std::vector<size_t> last_unused_;
  /// Never handed a gradient in this reduction.
  std::vector<bool> is_left_out_;
  /// What gradients were whose views are in use by others' sum.
  std::unordered_map<size_t, at::Tensor> kept_;
  /// The engine's task that armed last; `kNoTask` for none.
  int armed_task_;
  /// The engine's tasks at whose end `finish` is to run.
  std::vector<int> finish_tasks_;

  std::function<void(size_t)> on_reduced_;

  /// Last, so that no hook runs before or after the rest exists.
  GradientHooks hooks_;
};

} // namespace tandem::detail
