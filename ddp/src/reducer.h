#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/ddp/options.h>

#include "bucket_queue.h"
#include "gradient_hooks.h"
#include "gradient_weight.h"
#include "module_tensors.h"
#include "stream_order.h"

namespace tandem::detail {

/// Averages gradients over the ranks while backward runs. See Note [Reduction].
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
  /// its backward is to be reduced.
  /// **Throws** `ConfigError` naming the parameters that got no gradient in the
  /// last reduction, or that were converted or unfrozen since construction.
  void prepare_forward(bool gradient_sync);

  /// How much the gradients count of the forward that follows; null: as much as
  /// any other rank's.
  void weigh(std::shared_ptr<GradientWeight> weight);

  /// Marks the output of that forward, so that its backward is reduced, whenever
  /// and however often it runs.
  void watch(const std::vector<at::Tensor>& outputs);

  std::string describe() const;
  Counters counters() const;

 private:
  void on_gradient(size_t index);
  void store(size_t index);
  void queue_finish();
  void finish();
  void hand_over(const Bucket& bucket);
  void rearm(const std::shared_ptr<GradientWeight>& weight);
  double divisor_of(const std::shared_ptr<GradientWeight>& weight) const;
  void recover();
  void restart();
  void forget_marks();
  void follow_parameters();
  std::string message_for_missing() const;

  std::shared_ptr<comm::ProcessGroup> group_;
  const ModuleTensors& tensors_;
  bool gradient_as_view_;
  mutable std::mutex mutex_;
  BucketQueue queue_;
  std::vector<GradientSlot> slots_;
  StreamOrder streams_;

  /// Whether gradients that arrive are to be reduced.
  bool armed_ = false;
  /// A hook threw: the rest of this backward is not reduced.
  bool broken_ = false;
  std::vector<bool> is_ready_;
  size_t num_ready_ = 0;
  /// Of the forward whose gradients arrive.
  std::shared_ptr<GradientWeight> weight_;
  /// The engine's task that armed last; -1 for none.
  int armed_task_ = -1;
  /// The engine's task at whose end `finish` is to run; -1 for none.
  int finish_task_ = -1;

  /// Last, so that no hook runs before or after the rest exists.
  GradientHooks hooks_;
};

} // namespace tandem::detail
