#include "restarts.h"

namespace tandem::comm::launch {

const RankFailure& cause_of(const LaunchResult& result) {
  return result.interrupted_by == 0 ? result.causes.front()
                                    : result.causes.back();
}

std::optional<LaunchResult> Restarts::after(const AttemptEnd& end) {
  LaunchResult result;
  result.interrupted_by = end.interrupted_by;
  result.node_failure = end.node_failure;
  result.exit_code = end.node_failure.empty() ? 0 : 1;
  const bool failed = !end.failures.empty();
  if (failed) {
    const bool may_restart = end.interrupted_by == 0 && end.clean &&
        end.node_failure.empty() && attempt() < max_restarts_;
    causes_.push_back(end.failures.front());
    if (may_restart) {
      return std::nullopt;
    }
  }
  result.causes = causes_;
  if (failed) {
    result.first_failure = cause_of(result);
    result.exit_code = result.first_failure->status.shell_code();
  }
  return result;
}

LaunchResult Restarts::abandoned(const std::string& node_failure) const {
  LaunchResult result;
  result.causes = causes_;
  result.node_failure = node_failure;
  result.exit_code = 1;
  if (!causes_.empty()) {
    result.first_failure = cause_of(result);
    result.exit_code = result.first_failure->status.shell_code();
  }
  return result;
}

} // namespace tandem::comm::launch
