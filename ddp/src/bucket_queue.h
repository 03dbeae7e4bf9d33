#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/named_tensors.h>
#include <tandem/ddp/options.h>

#include "bucket.h"

namespace tandem::detail {

/// The buckets of one wrapper on their way through the all-reduce: a bucket is
/// launched when its last gradient was stored and all buckets before it have
/// been launched, so that every rank issues the same sequence.
///
/// **Threads**: one at a time; `Reducer` locks.
class BucketQueue {
 public:
  BucketQueue(
      std::shared_ptr<comm::ProcessGroup> group,
      const std::vector<NamedTensor>& parameters,
      const DistributedDataParallelOptions& options);

  const std::vector<Bucket>& buckets() const {
    return buckets_;
  }

  /// One more gradient of `bucket` is in place; launches what may go.
  void gradient_stored(size_t bucket);

  /// Waits for the launched buckets, in order, and passes each to `hand_over`.
  /// **Throws** as `ProcessGroup::wait`, naming the bucket.
  void finish_launched(const std::function<void(const Bucket&)>& hand_over);

  /// Whether every bucket has been handed over.
  bool is_finished() const {
    return next_finish_ == buckets_.size();
  }

  /// Makes ready for the next reduction; drops what is in flight.
  void restart();

  /// Waits for what is in flight, whose result nobody wants, and restarts.
  void abandon();

  const Counters& counters() const {
    return counters_;
  }

 private:
  void launch(Bucket& bucket);
  void finish(size_t index);
  std::string name_of(size_t index) const;

  std::shared_ptr<comm::ProcessGroup> group_;
  const std::vector<NamedTensor>& parameters_;
  ErrorCheck error_check_;
  std::vector<Bucket> buckets_;
  size_t next_launch_ = 0;
  size_t next_finish_ = 0;
  /// With `ErrorCheck::kNextStep`, each bucket's last all-reduce.
  std::vector<c10::intrusive_ptr<c10d::Work>> unconfirmed_;
  Counters counters_;
};

} // namespace tandem::detail
