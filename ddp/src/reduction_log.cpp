#include "reduction_log.h"

#include <algorithm>
#include <utility>

namespace tandem::detail {

void ReductionLog::forward_began() {
  forward_begin_ = Clock::now();
}

void ReductionLog::forward_ended() {
  forward_ = Clock::now() - forward_begin_;
}

void ReductionLog::backward_began() {
  backward_begin_ = Clock::now();
  if (!is_running_) {
    is_running_ = true;
    begin_ = backward_begin_;
    last_gradient_ = begin_;
  }
}

void ReductionLog::gradient_came() {
  last_gradient_ = Clock::now();
}

void ReductionLog::bucket_launched(size_t index) {
  launches_.resize(std::max(launches_.size(), index + 1));
  launches_[index] = Clock::now();
}

void ReductionLog::compute_ended() {
  compute_end_ = Clock::now();
  compute_ += compute_end_ - backward_begin_;
}

void ReductionLog::backward_ended() {
  waiting_ += Clock::now() - compute_end_;
}

void ReductionLog::reduction_ended(size_t num_buckets) {
  const auto end = Clock::now();
  last_launches_.assign(num_buckets, 0);
  auto first_launch = end;
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (launches_[i] != Clock::time_point()) {
      last_launches_[i] = since_begin(launches_[i]).count();
      first_launch = std::min(first_launch, launches_[i]);
    }
  }
  last_gradient_time_ = since_begin(last_gradient_).count();
  last_ = {
      .forward = forward_,
      .compute = compute_,
      .communication = end - first_launch,
      .overlap = std::max(Seconds(end - first_launch) - waiting_, Seconds())};
  total_.forward += last_.forward;
  total_.compute += last_.compute;
  total_.communication += last_.communication;
  total_.overlap += last_.overlap;
  ++num_reductions_;
  restart();
}

void ReductionLog::restart() {
  is_running_ = false;
  launches_.clear();
  compute_ = {};
  waiting_ = {};
}

ReductionLog::Seconds ReductionLog::since_begin(Clock::time_point time) const {
  return time - begin_;
}

void ReductionLog::write_to(DDPLoggingData& data) const {
  data.num_reductions = num_reductions_;
  data.forward_time = last_.forward.count();
  data.backward_compute_time = last_.compute.count();
  data.backward_comm_time = last_.communication.count();
  data.backward_compute_comm_overlap_time = last_.overlap.count();
  const auto count = static_cast<double>(std::max(num_reductions_, int64_t(1)));
  data.avg_forward_time = total_.forward.count() / count;
  data.avg_backward_compute_time = total_.compute.count() / count;
  data.avg_backward_comm_time = total_.communication.count() / count;
  data.avg_backward_compute_comm_overlap_time = total_.overlap.count() / count;
  data.bucket_launch_times = last_launches_;
  data.last_gradient_time = last_gradient_time_;
}

} // namespace tandem::detail
