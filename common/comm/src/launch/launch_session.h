#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

#include "coordination.h"
#include "error_folder.h"
#include "guard.h"
#include "output_queue.h"
#include "rank_set.h"
#include "signal_watch.h"
#include "stop_policy.h"
#include "subreaper.h"

namespace tandem::comm::launch {

/// One launch, from the first process to the report: an event loop over the
/// ranks' output, their ends and this process's signals.
class LaunchSession {
 public:
  /// Starts nothing.
  explicit LaunchSession(const LaunchOptions& options);

  /// **Throws** as `launch_local`.
  LaunchResult run();

 private:
  void note(const std::string& line);
  LaunchResult run_attempts();
  /// The order to end, or the user's second Ctrl-C while no rank runs.
  std::optional<Finish> next_finish();
  Environment base_environment();
  /// All of one attempt, to the end of its processes.
  AttemptEnd run_attempt(const Rendezvous& rendezvous);
  void start_ranks(const Rendezvous& rendezvous);
  /// Sleeps until something happens and moves what output there is.
  void move_output();
  /// Takes this process's signals, and those that other hosts' launchers got.
  void take_signals();
  void interrupt(int signal);
  void take_exits();
  void send_due_signal();
  /// All gone, or SIGKILL had its time: a process that the kernel holds is no
  /// reason to wait for ever.
  bool over();
  void announce_restart(const Start& start);
  void finish_output();

  const LaunchOptions& options_;
  // In the order in which they must come to life. The guard forks before a
  // store has threads, and goes after the ranks.
  Subreaper subreaper_;
  SignalWatch signals_;
  ErrorFolder error_folder_;
  Guard guard_;
  OutputQueue output_;
  OutputQueue separate_error_;
  OutputQueue& error_; // `output_` if both go to one file: lines stay whole
  std::unique_ptr<Coordination> coordination_;
  Environment environment_;
  int num_own_interrupts_ = 0;
  int interrupted_by_ = 0;
  // Of the attempt that runs.
  std::optional<RankSet> ranks_;
  StopPolicy policy_;
  std::vector<RankFailure> failures_;
};

} // namespace tandem::comm::launch
