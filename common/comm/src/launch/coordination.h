#pragma once

#include <optional>
#include <vector>

#include <tandem/comm/launcher.h>

#include "rank_environment.h"
#include "restarts.h"

namespace tandem::comm::launch {

/// An order to start the ranks of this host.
struct Start {
  Rendezvous rendezvous;
  /// Why the attempt before ended, on all hosts; the cause first.
  std::vector<RankFailure> failures;
};

/// An order to end the launch.
struct Finish {
  LaunchResult result;
  /// Of the last attempt, on all hosts; the cause first.
  std::vector<RankFailure> failures;
};

/// The launcher's side towards the launch as a whole: hears what happens to the
/// ranks of this host, and says when they start, end, and start again.
class Coordination {
 public:
  Coordination() = default;
  virtual ~Coordination() = default;
  Coordination(const Coordination&) = delete;
  Coordination& operator=(const Coordination&) = delete;

  /// The order to start, once for each attempt.
  virtual std::optional<Start> take_start() = 0;
  /// The order to end, when no rank of this host runs.
  virtual std::optional<Finish> take_finish() = 0;

  /// The ranks of this host have ended.
  virtual void tell_end(const AttemptEnd& end) = 0;
};

} // namespace tandem::comm::launch
