#include <fmt/format.h>

#include "reducer.h"
#include "reduction_messages.h"

namespace tandem::detail {

std::string Reducer::describe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return fmt::format(
      "Gradients are {} in {}; they are {} the buckets.{}{}",
      options_.reduce_op() == comm::ReduceOp::kSum ? "summed" : "averaged",
      describe_buckets(queue_.buckets()),
      options_.gradient_as_bucket_view() ? "views into" : "copied from",
      describe_times(),
      queue_.hook() != nullptr
          ? " Communication hook " + queue_.hook()->describe() + "."
          : std::string());
}

/// Empty before the first reduction.
std::string Reducer::describe_times() const {
  DDPLoggingData data;
  log_.write_to(data);
  if (data.num_reductions == 0) {
    return "";
  }
  constexpr double ms_per_s = 1000;
  return fmt::format(
      " In {} reductions a backward took {:.2f} ms and communication {:.2f} "
      "ms, {:.2f} of them hidden by backward.{}",
      data.num_reductions,
      data.avg_backward_compute_time * ms_per_s,
      data.avg_backward_comm_time * ms_per_s,
      data.avg_backward_compute_comm_overlap_time * ms_per_s,
      has_rebuilt_ ? " Buckets follow the order of rank 0's first backward."
                   : "");
}

Counters Reducer::counters() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto total = queue_.counters();
  total.collectives += counters_.collectives;
  total.bytes_moved += counters_.bytes_moved;
  return total;
}

DDPLoggingData Reducer::logging_data() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  DDPLoggingData data;
  log_.write_to(data);
  for (const auto& bucket : queue_.buckets()) {
    data.bucket_sizes.push_back(static_cast<int64_t>(bucket.flat.nbytes()));
    auto& names = data.bucket_params.emplace_back();
    for (const size_t index : bucket.parameters) {
      names.push_back(tensors_.trained[index].name);
    }
  }
  for (const size_t index : last_unused_) {
    data.unused_params.push_back(tensors_.trained[index].name);
  }
  data.has_rebuilt_buckets = has_rebuilt_;
  return data;
}

std::string Reducer::message_for_missing_parameters() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < is_ready_.size(); ++i) {
    if (!is_ready_[i]) {
      missing.push_back(i);
    }
  }
  return message_for_missing(
      *group_,
      tensors_,
      missing,
      options_.static_graph());
}

} // namespace tandem::detail
