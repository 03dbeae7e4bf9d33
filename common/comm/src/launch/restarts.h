#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

namespace tandem::comm::launch {

/// How an attempt ended, on one host or on all.
struct AttemptEnd {
  /// Sorted: the cause first. Empty if all ranks succeeded.
  std::vector<RankFailure> failures;
  int interrupted_by = 0;
  /// All processes are gone, so that others may take their place.
  bool clean = true;
  /// How a host was lost; empty if none was.
  std::string node_failure;
};

/// Of the causes of a failed launch, the one whose exit code is the launch's.
const RankFailure& cause_of(const LaunchResult& result);

/// Decides after each attempt whether there is another, and what comes of all
/// of them.
class Restarts {
 public:
  explicit Restarts(int64_t max_restarts) : max_restarts_(max_restarts) {}

  /// The launch's result; nothing if all ranks are to start again.
  std::optional<LaunchResult> after(const AttemptEnd& end);

  /// The result if there cannot be another attempt after all.
  LaunchResult abandoned(const std::string& node_failure) const;

  /// Of the attempt that runs, or runs next: 0, 1, ...
  int64_t attempt() const {
    return static_cast<int64_t>(causes_.size());
  }

 private:
  int64_t max_restarts_;
  std::vector<RankFailure> causes_;
};

} // namespace tandem::comm::launch
