#pragma once

#include <csignal>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <tandem/comm/launcher.h>

#include "guard.h"
#include "line_prefixer.h"
#include "output_queue.h"
#include "rank_process.h"
#include "rank_stream.h"

namespace tandem::comm::launch {

/// The ranks of one attempt on this host.
class RankSet {
 public:
  /// All outlive this object.
  RankSet(
      const Guard& guard,
      const sigset_t& signal_mask,
      OutputQueue& output,
      OutputQueue& error);

  /// Starts one. `error_file`: where it may say what ended it; empty if
  /// nowhere.
  /// **Throws** as `RankProcess`.
  void start(int64_t rank, const Program& program, std::string error_file);

  /// Those to poll: not at their end, and with room in their queue.
  std::vector<RankStream*> open_streams();
  /// The failures among the ends that were not taken before.
  std::vector<RankFailure> take_failures();
  void signal_all(int signal) const;
  bool all_ended() const;
  /// True when no process of any group is left.
  bool all_gone();
  /// Passes on what is left of the output.
  void finish_output();

 private:
  struct Rank {
    Rank(
        int64_t index,
        const Program& program,
        std::string error_file,
        const RankSet& set);

    RankFailure failure(const ExitStatus& status);

    int64_t index;
    std::string error_file;
    LineTail tail;
    RankProcess process;
    RankStream output;
    RankStream error;
  };

  const Guard& guard_;
  const sigset_t& signal_mask_;
  OutputQueue& output_;
  OutputQueue& error_;
  std::deque<Rank> ranks_;
};

} // namespace tandem::comm::launch
