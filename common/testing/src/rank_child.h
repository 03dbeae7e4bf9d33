#pragma once

#include <sys/types.h>

#include <tandem/comm/launcher.h>
#include <tandem/testing/rank_processes.h>

#include "rank_messages.h"

namespace tandem::testing::detail {

/// One rank's process, seen from the one that started it.
class RankChild {
 public:
  /// Executes this binary anew, in a process group of its own.
  /// **Throws** `Error` if the system refuses.
  explicit RankChild(const comm::Environment& environment);
  /// Kills what is left of the group.
  ~RankChild();
  RankChild(const RankChild&) = delete;
  RankChild& operator=(const RankChild&) = delete;

  /// To be polled for input; negative once the rank has closed it.
  int pipe() const {
    return pipe_;
  }
  /// Reads what has arrived; to be called when the pipe can be read.
  void read_pipe();
  /// Looks whether the process has ended; true from then on.
  bool poll_exit();
  void signal_group(int signal) const;

  const RankOutcome& outcome() const {
    return outcome_;
  }

 private:
  void receive(RankMessage kind, std::string payload);
  void close_pipe();

  pid_t pid_ = -1;
  int pipe_ = -1;
  bool ended_ = false;
  MessageReader reader_;
  RankOutcome outcome_;
};

} // namespace tandem::testing::detail
