#include "bucket_queue.h"

#include <utility>

#include <fmt/format.h>

#include "rank_text.h"

namespace tandem::detail {

namespace {

constexpr size_t kNamesPerBucket = 3;

} // namespace

BucketQueue::BucketQueue(
    std::shared_ptr<comm::ProcessGroup> group,
    const std::vector<NamedTensor>& parameters,
    const DistributedDataParallelOptions& options)
    : group_(std::move(group)),
      parameters_(parameters),
      error_check_(options.error_check()),
      buckets_(make_buckets(
          parameters,
          options.first_bucket_bytes(),
          options.bucket_cap_bytes())),
      unconfirmed_(buckets_.size()) {
  restart();
}

void BucketQueue::gradient_stored(size_t bucket) {
  --buckets_[bucket].num_pending;
  while (next_launch_ < buckets_.size() &&
         buckets_[next_launch_].num_pending == 0) {
    launch(buckets_[next_launch_]);
    ++next_launch_;
  }
}

void BucketQueue::finish_launched(
    const std::function<void(const Bucket&)>& hand_over) {
  while (next_finish_ < next_launch_) {
    finish(next_finish_);
    hand_over(buckets_[next_finish_]);
    ++next_finish_;
  }
}

void BucketQueue::restart() {
  next_launch_ = 0;
  next_finish_ = 0;
  for (auto& bucket : buckets_) {
    bucket.num_pending = bucket.parameters.size();
    bucket.work.reset();
  }
}

void BucketQueue::abandon() {
  try {
    finish_launched([](const Bucket&) {});
  } catch (...) {
    restart();
    throw;
  }
  restart();
}

void BucketQueue::launch(Bucket& bucket) {
  if (bucket.flat.numel() == 0) {
    return;
  }
  bucket.work = group_->all_reduce_async(bucket.flat);
  ++counters_.collectives;
  counters_.bytes_moved += static_cast<int64_t>(bucket.flat.nbytes());
}

void BucketQueue::finish(size_t index) {
  const auto work = std::exchange(buckets_[index].work, nullptr);
  if (!work) {
    return;
  }
  const auto name = name_of(index);
  if (error_check_ == ErrorCheck::kEveryStep) {
    group_->confirm(work, name);
    return;
  }
  group_->wait(work, name);
  group_->confirm(
      std::exchange(unconfirmed_[index], work),
      name + " of the step before");
}

std::string BucketQueue::name_of(size_t index) const {
  return fmt::format(
      "all-reduce of gradient bucket {} of {} ({})",
      index + 1,
      buckets_.size(),
      quoted_names(parameters_, buckets_[index].parameters, kNamesPerBucket));
}

} // namespace tandem::detail
