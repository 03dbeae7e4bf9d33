#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// How the reductions of a `DistributedDataParallel` went. Times are in seconds
/// on this rank's host clock, of the last whole reduction; `avg_` is the mean
/// over all of them. On a device that works asynchronously, times of compute are
/// those of the host that issues it.
/// **Source**: PyTorch's `DistributedDataParallel._get_ddp_logging_data`
struct DDPLoggingData {
  int64_t num_reductions = 0;
  /// Bytes of each bucket, in the order of their launch.
  std::vector<int64_t> bucket_sizes;
  /// Names of the parameters in each.
  std::vector<std::vector<std::string>> bucket_params;
  /// Buckets follow the order in which rank 0's first gradients came, and that
  /// was another than registration's.
  bool has_rebuilt_buckets = false;
  /// Parameters that got no gradient on this rank.
  std::vector<std::string> unused_params;

  double forward_time = 0;
  /// Until the last gradient was there.
  double backward_compute_time = 0;
  /// From the first bucket's launch until all are reduced.
  double backward_comm_time = 0;
  /// The part of communication that backward hid.
  double backward_compute_comm_overlap_time = 0;
  double avg_forward_time = 0;
  double avg_backward_compute_time = 0;
  double avg_backward_comm_time = 0;
  double avg_backward_compute_comm_overlap_time = 0;

  /// Since the beginning of backward: each bucket's launch (0 for those that
  /// were not sent), and the last gradient.
  std::vector<double> bucket_launch_times;
  double last_gradient_time = 0;
};

} // namespace tandem
