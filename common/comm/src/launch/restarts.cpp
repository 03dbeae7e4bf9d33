#include "restarts.h"

namespace tandem::comm::launch {

std::optional<LaunchResult> Restarts::after(const AttemptEnd& end) {
  LaunchResult result;
  result.interrupted_by = end.interrupted_by;
  const bool failed = !end.failures.empty();
  if (failed) {
    const bool may_restart =
        end.interrupted_by == 0 && end.clean && attempt() < max_restarts_;
    causes_.push_back(end.failures.front());
    if (may_restart) {
      return std::nullopt;
    }
    result.first_failure =
        end.interrupted_by == 0 ? causes_.front() : causes_.back();
    result.exit_code = result.first_failure->status.shell_code();
  }
  result.causes = causes_;
  return result;
}

} // namespace tandem::comm::launch
