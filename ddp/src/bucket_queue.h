#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/named_tensors.h>
#include <tandem/ddp/options.h>

#include "bucket.h"
#include "module_tensors.h"
#include "reduction_log.h"

namespace tandem::detail {

/// The buckets of one wrapper on their way through the all-reduce, or through a
/// communication hook in its place: a bucket is launched when its last gradient
/// was stored and all buckets before it have been launched, so that every rank
/// issues the same sequence.
///
/// **Threads**: one at a time; `Reducer` locks.
class BucketQueue {
 public:
  /// `tensors` and `log` outlive the queue.
  BucketQueue(
      std::shared_ptr<comm::ProcessGroup> group,
      const ModuleTensors& tensors,
      const DistributedDataParallelOptions& options,
      ReductionLog& log);

  const std::vector<Bucket>& buckets() const {
    return buckets_;
  }
  /// The parameters in the order of the buckets, delayed ones apart.
  std::vector<size_t> order() const;

  /// Makes new buckets in this order. To be called between two reductions.
  void plan(const std::vector<size_t>& order);

  /// To be called before the first reduction.
  void set_hook(std::shared_ptr<comm::CommHook> hook);
  const comm::CommHook* hook() const {
    return hook_.get();
  }

  /// `bucket` holds no rank's gradients in this reduction; it is passed on
  /// without being sent.
  void skip(size_t bucket) {
    buckets_[bucket].is_skipped = true;
  }

  /// One more gradient of `bucket` is in place; launches what may go.
  void gradient_stored(size_t bucket);

  /// Waits for the launched buckets, in order, and passes each to `hand_over`.
  /// **Throws** as `ProcessGroup::wait`, naming the bucket; what the hook
  /// throws.
  void finish_launched(const std::function<void(const Bucket&)>& hand_over);

  /// Makes ready for the next reduction; drops what is in flight.
  void restart();

  /// Waits for what is in flight, whose result nobody wants, and restarts.
  void abandon();

  const Counters& counters() const {
    return counters_;
  }

 private:
  void launch(size_t index);
  void lend(size_t index);
  void finish(size_t index);
  void take_back(size_t index);
  void confirm_last(size_t index);
  std::vector<size_t> delayed() const;
  std::string name_of(size_t index) const;

  std::shared_ptr<comm::ProcessGroup> group_;
  const ModuleTensors& tensors_;
  ReductionLog& log_;
  ErrorCheck error_check_;
  BucketSizes sizes_;
  std::shared_ptr<comm::CommHook> hook_;
  std::vector<Bucket> buckets_;
  size_t next_launch_ = 0;
  size_t next_finish_ = 0;
  /// With `ErrorCheck::kNextStep`, each bucket's last all-reduce.
  std::vector<c10::intrusive_ptr<c10d::Work>> unconfirmed_;
  Counters counters_;
};

} // namespace tandem::detail
