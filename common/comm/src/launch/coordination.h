#pragma once

#include <optional>
#include <string>
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

  /// Adds descriptors whose being readable is a reason for a `step`.
  virtual void add_fds(std::vector<int>& fds) const = 0;
  /// Takes what other hosts say, and does what is due. Waits for nothing.
  /// **Throws** `ConfigError` if this host cannot take part.
  virtual void step() = 0;

  /// The order to start, once for each attempt.
  virtual std::optional<Start> take_start() = 0;
  /// True once the ranks of all hosts are to end: one has failed.
  virtual bool stop_asked() const = 0;
  /// A signal that another host's launcher was interrupted by, else 0.
  virtual int interrupt_asked() const = 0;
  /// The order to end, when no rank of this host runs.
  virtual std::optional<Finish> take_finish() = 0;
  /// Something to tell the user meanwhile.
  virtual std::optional<std::string> take_note() = 0;

  /// A rank of this host has failed.
  virtual void tell_failure() = 0;
  /// This launcher got `signal`, for the first time.
  virtual void tell_interrupt(int signal) = 0;
  /// The ranks of this host have ended.
  virtual void tell_end(const AttemptEnd& end) = 0;
  /// This launcher fails itself.
  virtual void tell_error(const std::string& why) = 0;
};

/// An end before any rank ran.
Finish interrupted_before_start(int signal);

} // namespace tandem::comm::launch
