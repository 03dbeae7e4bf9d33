#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tandem/core/errors.h>

#include "harness/messages.h"
#include "harness/mode.h"

namespace tandem::bench {

/// A mode does not compute or do what it should, so its speed means nothing.
class VerificationError : public Error {
 public:
  using Error::Error;
};

/// What has to hold before anything is timed.
class ModeChecks {
 public:
  /// `batch`: rows of a step of every mode.
  explicit ModeChecks(int64_t batch) : batch_(batch) {}

  /// Checks what all workers of a mode report: its results are the bare
  /// network's, or its gradients finite if a communication hook makes them
  /// something else, and a step of it has as many rows and operations as one of the
  /// modes before it with the same activity.
  /// **Throws** `VerificationError` naming the mode, the subject, what was
  /// expected and what was found.
  void check(
      const std::string& mode_name,
      Activity activity,
      const std::vector<ReadyReport>& reports);

 private:
  int64_t batch_;
  /// The first mode with that activity, and the operations of its step.
  std::map<Activity, std::pair<std::string, int64_t>> first_;
};

} // namespace tandem::bench
