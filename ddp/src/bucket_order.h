#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// The order in which gradients came in the first reduction, which buckets
/// should follow.
class BucketOrder {
 public:
  /// `planned`: the parameters in the order of the buckets that there are.
  explicit BucketOrder(std::vector<size_t> planned);

  /// A gradient came; does nothing after the first reduction.
  void arrived(size_t index);
  /// A reduction ended; `is_whole` unless it failed.
  void reduction_ended(bool is_whole);

  /// Rank 0's order, once after the first whole reduction, if it is another
  /// than the planned one. Parameters that did not come follow those that did.
  /// **Collective** that once.
  std::optional<std::vector<size_t>> take(comm::ProcessGroup& group);

 private:
  enum class Stage { kRecording, kRecorded, kTaken };

  std::vector<size_t> planned_;
  std::vector<size_t> arrivals_;
  Stage stage_ = Stage::kRecording;
};

} // namespace tandem::detail
