#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <tandem/comm/launcher.h>

#include "file_descriptor.h"
#include "guard.h"
#include "rank_environment.h"

namespace tandem::comm::launch {

/// What a rank runs.
struct Program {
  std::string path;
  std::vector<std::string> arguments; // its name first
  Environment environment;
};

/// One rank: a process that leads a process group of its own.
class RankProcess {
 public:
  /// Starts it. `signal_mask` is what it starts with.
  /// **Throws** `ProgramError` if `program` cannot be run, `Error` if the
  /// system refuses a process.
  RankProcess(
      const Program& program,
      const Guard& guard,
      const sigset_t& signal_mask);
  /// Ends the group with SIGKILL if it is still there.
  ~RankProcess();
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;

  pid_t pid() const {
    return pid_;
  }
  /// Gives the read ends of its stdout and stderr away.
  FileDescriptor take_output() {
    return std::move(output_);
  }
  FileDescriptor take_error() {
    return std::move(error_);
  }

  /// Sends `signal` to the whole group.
  void signal_group(int signal) const;
  /// How the process ended; nothing while it runs, and once it was told.
  std::optional<ExitStatus> poll_exit();
  bool ended() const {
    return ended_;
  }
  /// True when no process of the group is left, the leader included.
  bool poll_group_gone();

 private:
  const Guard& guard_;
  pid_t pid_ = -1;
  bool ended_ = false;
  bool group_gone_ = false;
  FileDescriptor output_;
  FileDescriptor error_;
};

} // namespace tandem::comm::launch
