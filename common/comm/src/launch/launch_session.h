#pragma once

#include <deque>
#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

#include "agent_store.h"
#include "guard.h"
#include "line_prefixer.h"
#include "output_queue.h"
#include "rank_process.h"
#include "rank_stream.h"
#include "signal_watch.h"
#include "stop_policy.h"
#include "subreaper.h"

namespace tandem::comm::launch {

/// One launch, from the first process to the report: an event loop over the
/// ranks' output, their ends and this process's signals.
class LaunchSession {
 public:
  /// `path`: the program, found. Starts nothing.
  LaunchSession(const LaunchOptions& options, std::string path);

  /// **Throws** as `launch_local`.
  LaunchResult run();

 private:
  struct Rank {
    Rank(
        int64_t index,
        const Program& program,
        const Guard& guard,
        const sigset_t& signal_mask,
        OutputQueue& output,
        OutputQueue& error);

    int64_t index;
    LineTail tail;
    RankProcess process;
    RankStream output;
    RankStream error;
  };

  void note(const std::string& line);
  void start_ranks();
  /// Sleeps until something happens and moves what output there is.
  void move_output(bool from_ranks);
  void take_signals();
  void take_exits();
  void record_failure(Rank& rank, const ExitStatus& status);
  void send_due_signal();
  bool all_ended() const;
  bool all_gone();
  /// All gone, or SIGKILL had its time: a process that the kernel holds is no
  /// reason to wait for ever.
  bool over();
  void finish_output();

  const LaunchOptions& options_;
  std::string path_;
  // In the order in which they must come to life. The guard forks before the
  // store has threads, and goes after the ranks.
  Subreaper subreaper_;
  SignalWatch signals_;
  Guard guard_;
  AgentStore store_;
  OutputQueue output_;
  OutputQueue separate_error_;
  OutputQueue& error_; // `output_` if both go to one file: lines stay whole
  std::deque<Rank> ranks_;
  StopPolicy policy_;
  LaunchResult result_;
};

} // namespace tandem::comm::launch
