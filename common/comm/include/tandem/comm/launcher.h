#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>

#include <tandem/core/errors.h>

namespace tandem::comm {

/// Environment variables by name.
using Environment = std::map<std::string, std::string>;

/// Of `LaunchOptions::master_port`; torchrun's too.
inline constexpr uint16_t kDefaultMasterPort = 29500;

/// What `launch_local` starts, and how it ends it.
struct LaunchOptions {
  /// `command`: the program, by path or looked up in PATH, and its arguments.
  LaunchOptions(int64_t num_ranks, std::vector<std::string> command)
      : num_ranks_(num_ranks), command_(std::move(command)) {}

  TORCH_ARG(int64_t, num_ranks);
  TORCH_ARG(std::vector<std::string>, command);
  /// Set for every rank on top of this process's environment; the rendezvous
  /// variables win over it. OMP_NUM_THREADS is 1 unless it is set somewhere.
  TORCH_ARG(Environment, environment);
  /// Tag of the launcher's own lines: "[launch] ...".
  TORCH_ARG(std::string, name) = "launch";
  /// How often all ranks are started again after one failed. Their programs
  /// then begin anew: what is not in a checkpoint is lost.
  TORCH_ARG(int64_t, max_restarts) = 0;
  /// Hosts that take part, each with a launcher of its own, and this one's
  /// number: 0 serves the stores and leads.
  TORCH_ARG(int64_t, num_nodes) = 1;
  TORCH_ARG(int64_t, node_rank) = 0;
  /// Where the launchers meet if there are several: name or address of node 0,
  /// and a port that is free there. Ranks get this address too, with a port of
  /// their own.
  TORCH_ARG(std::string, master_addr);
  TORCH_ARG(uint16_t, master_port) = kDefaultMasterPort;
  /// How long the launchers wait for each other at the start.
  TORCH_ARG(std::chrono::milliseconds, meet_timeout) = std::chrono::minutes(5);
  /// How long another launcher may be silent, before it counts as lost. Longer:
  /// networks may be away for longer, and a lost host is noticed later.
  TORCH_ARG(std::chrono::milliseconds, node_timeout) = std::chrono::seconds(10);
  /// From SIGTERM to SIGKILL. Longer: ranks may save more before they end.
  TORCH_ARG(std::chrono::milliseconds, grace) = std::chrono::seconds(5);
  /// Where the ranks' lines go; the launcher's own go to `error_fd`.
  TORCH_ARG(int, output_fd) = 1;
  TORCH_ARG(int, error_fd) = 2;
};

/// How a process ended: `signal` is 0 if it exited by itself.
struct ExitStatus {
  int code = 0;
  int signal = 0;

  bool success() const {
    return code == 0 && signal == 0;
  }
  /// What a shell returns: the code, or 128 + signal.
  int shell_code() const {
    return signal == 0 ? code : 128 + signal;
  }
};

struct RankFailure {
  int64_t rank = 0;
  /// Of the host that it ran on.
  int64_t node_rank = 0;
  int64_t pid = 0;
  ExitStatus status;
  /// The end of its stdout and stderr, in order of arrival.
  std::vector<std::string> last_lines;
  /// The message in its TORCHELASTIC_ERROR_FILE; empty if it wrote none.
  std::string error;
  /// By that file, else when the launcher saw its end.
  std::chrono::system_clock::time_point time;
};

struct LaunchResult {
  /// 0 if all ranks succeeded in the end, else `first_failure`'s
  /// `shell_code()`. The same on all hosts.
  int exit_code = 0;
  /// The cause of the first attempt's end; that of the last one's if the launch
  /// was interrupted.
  std::optional<RankFailure> first_failure;
  /// The cause of each attempt that failed; also if a later one succeeded.
  std::vector<RankFailure> causes;
  /// SIGINT or SIGTERM if one was forwarded, else 0.
  int interrupted_by = 0;
  /// How another launcher was lost, or was never met: "node 1: ...". Empty if
  /// all stayed to the end. Without a rank's failure, `exit_code` is then 1.
  std::string node_failure;
};

/// The program to launch cannot be: it is not there, or not executable.
class ProgramError : public ConfigError {
 public:
  ProgramError(std::string message, int exit_code);

  /// What a shell returns then: 127 for a program not found, 126 for one that
  /// is no program.
  int exit_code() const {
    return exit_code_;
  }

 private:
  int exit_code_;
};

/// Starts `num_ranks` processes on this host with torchrun's variables and
/// waits for them, and for those of other hosts if there are any.
///
/// - The store is served from here, on the loopback interface and a port that
///   the kernel chose, so ranks are its clients and outlive rank 0. With
///   several hosts node 0 serves it, on the interface of `master_addr`.
/// - Each rank leads a process group of its own and reads from /dev/null. Its
///   stdout and stderr are passed on line by line, after "[rank r] "; lines of
///   more than 64 KiB come in pieces.
/// - When a rank fails, the others get SIGTERM, after `grace` SIGKILL, and the
///   failure is reported on `error_fd`. What a rank that succeeded left running
///   in its group is ended in the same way, after the last rank.
/// - Each rank may write its error to the file TORCHELASTIC_ERROR_FILE (see
///   `write_error_file`); it is shown. Of several failures the first by time is
///   the cause, but a peer's loss is not, as long as there is another.
/// - After a failure all ranks start again, at most `max_restarts` times, with
///   a store and a port that are new and TORCHELASTIC_RESTART_COUNT one higher.
///   An interrupt ends that.
/// - With several hosts all that holds for the ranks of all: a failure ends
///   them, an interrupt is forwarded to them, and they start again together.
///   The launchers talk over `master_port` of node 0; one that is lost ends the
///   launch. They trust each other and their network: nothing is authenticated.
/// - The first SIGINT or SIGTERM is forwarded to all; once one rank has ended
///   by it, the others have `grace`. The second one is SIGKILL at once.
/// - If this process is killed, a guard process ends the groups at once.
///
/// **Threads**: to be called while the process has no other threads, since
/// those would take the signals; blocks SIGINT, SIGTERM and SIGCHLD until it
/// returns.
/// **Throws** `ConfigError` for options, `ProgramError`; no rank runs then.
/// `Error` if the system refuses a process; those started are ended.
LaunchResult launch_local(const LaunchOptions& options);

} // namespace tandem::comm
