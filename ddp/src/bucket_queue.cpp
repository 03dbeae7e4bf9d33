#include "bucket_queue.h"

#include <utility>

#include <fmt/format.h>

#include <tandem/comm/tensor_future.h>

#include "rank_text.h"

namespace tandem::detail {

namespace {

constexpr size_t kNamesPerBucket = 3;

/// Backward reaches the last layers first.
std::vector<size_t> reverse_order(const ModuleTensors& tensors) {
  std::vector<size_t> order;
  for (size_t i = tensors.trained.size(); i-- > 0;) {
    if (tensors.roles[i] == GradientRole::kBucket) {
      order.push_back(i);
    }
  }
  return order;
}

} // namespace

BucketQueue::BucketQueue(
    std::shared_ptr<comm::ProcessGroup> group,
    const ModuleTensors& tensors,
    const DistributedDataParallelOptions& options,
    ReductionLog& log)
    : group_(std::move(group)),
      tensors_(tensors),
      log_(log),
      error_check_(options.error_check()),
      sizes_{
          options.first_bucket_bytes(),
          options.bucket_cap_bytes(),
          options.reduce_in_float()} {
  plan(reverse_order(tensors));
}

std::vector<size_t> BucketQueue::order() const {
  std::vector<size_t> order;
  for (const auto& bucket : buckets_) {
    for (const size_t index : bucket.parameters) {
      if (tensors_.roles[index] == GradientRole::kBucket) {
        order.push_back(index);
      }
    }
  }
  return order;
}

std::vector<size_t> BucketQueue::delayed() const {
  std::vector<size_t> order;
  for (size_t i = tensors_.trained.size(); i-- > 0;) {
    if (tensors_.roles[i] == GradientRole::kDelayed) {
      order.push_back(i);
    }
  }
  return order;
}

void BucketQueue::plan(const std::vector<size_t>& order) {
  for (size_t i = 0; i < unconfirmed_.size(); ++i) {
    confirm_last(i);
  }
  buckets_ = make_buckets(tensors_.trained, order, sizes_);
  for (auto& bucket : make_buckets(tensors_.trained, delayed(), sizes_)) {
    buckets_.push_back(std::move(bucket));
  }
  unconfirmed_.assign(buckets_.size(), nullptr);
  restart();
}

void BucketQueue::set_hook(std::shared_ptr<comm::CommHook> hook) {
  hook_ = std::move(hook);
}

void BucketQueue::gradient_stored(size_t bucket) {
  --buckets_[bucket].num_pending;
  while (next_launch_ < buckets_.size() &&
         buckets_[next_launch_].num_pending == 0) {
    launch(next_launch_);
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
    bucket.is_skipped = false;
    bucket.work.reset();
    bucket.lent.reset();
    bucket.future.reset();
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

void BucketQueue::launch(size_t index) {
  auto& bucket = buckets_[index];
  if (bucket.flat.numel() == 0 || bucket.is_skipped) {
    return;
  }
  log_.bucket_launched(index);
  ++counters_.collectives;
  if (hook_) {
    lend(index);
    return;
  }
  bucket.work = group_->all_reduce_async(bucket.flat);
  counters_.bytes_moved += static_cast<int64_t>(bucket.flat.nbytes());
}

void BucketQueue::lend(size_t index) {
  auto& bucket = buckets_[index];
  std::vector<NamedTensor> members;
  members.reserve(bucket.parameters.size());
  for (const size_t member : bucket.parameters) {
    members.push_back(tensors_.trained[member]);
  }
  bucket.lent.emplace(
      index,
      index + 1 == buckets_.size(),
      bucket.flat,
      std::move(members));
  const auto sent_before = hook_->traffic().bytes_sent;
  bucket.future = hook_->run(*bucket.lent);
  counters_.bytes_moved += hook_->traffic().bytes_sent - sent_before;
  bucket.work = comm::work_of(bucket.future, group_->timeout());
}

void BucketQueue::finish(size_t index) {
  auto& bucket = buckets_[index];
  const auto work = std::exchange(bucket.work, nullptr);
  if (!work) {
    return;
  }
  const auto name = name_of(index);
  if (bucket.lent) {
    group_->confirm(work, name);
    take_back(index);
  } else if (error_check_ == ErrorCheck::kEveryStep) {
    group_->confirm(work, name);
  } else {
    group_->wait(work, name);
    confirm_last(index);
    unconfirmed_[index] = work;
  }
}

/// Lets the hook make its result, which may take a collective more.
void BucketQueue::take_back(size_t index) {
  auto& bucket = buckets_[index];
  const auto sent_before = hook_->traffic().bytes_sent;
  const auto result =
      hook_->collect(*bucket.lent, std::exchange(bucket.future, nullptr));
  counters_.bytes_moved += hook_->traffic().bytes_sent - sent_before;
  if (!result.is_same(bucket.flat)) {
    bucket.flat.copy_(result);
  }
  bucket.lent.reset();
}

void BucketQueue::confirm_last(size_t index) {
  group_->confirm(
      std::exchange(unconfirmed_[index], nullptr),
      name_of(index) + " of the step before");
}

std::string BucketQueue::name_of(size_t index) const {
  return fmt::format(
      "{} of gradient bucket {} of {} ({})",
      hook_ ? fmt::format("communication hook '{}'", hook_->name())
            : std::string("all-reduce"),
      index + 1,
      buckets_.size(),
      quoted_names(
          tensors_.trained,
          buckets_[index].parameters,
          kNamesPerBucket));
}

} // namespace tandem::detail
