#pragma once

namespace tandem {

/// What becomes of the buffers that each replica's or rank's forward changes,
/// such as BatchNorm's running statistics. The same option for both wrappers.
///
/// Under `kFirst` and `kMerge` forwards start from the same buffers everywhere;
/// they differ in which statistics a forward leaves behind. `SyncBatchNorm`
/// makes the whole batch's under every policy.
enum class BufferPolicy {
  /// Those of replica 0, rank 0: what its own rows gave. As in Python.
  kFirst,
  /// Running statistics of LibTorch's BatchNorm and InstanceNorm become those
  /// of all rows; the rest is as under `kFirst`. Means are exact. BatchNorm's
  /// variances are the law of total variance over the parts, weighted by their
  /// rows: exact up to factors N / (N - 1), N being a part's values per channel,
  /// and for a layer called once per forward; if called more often, they lack
  /// what varies between the parts of single calls. Costs one more transfer of
  /// the statistics per forward.
  kMerge,
  /// Each replica, each rank keeps its own; none are sent.
  kNone,
};

/// "first", "merge" or "none".
const char* buffer_policy_name(BufferPolicy policy);

} // namespace tandem
