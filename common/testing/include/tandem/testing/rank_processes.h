#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <tandem/comm/launcher.h>

namespace tandem::testing {

/// What a rank function returns to the process that started it.
struct RankResult {
  std::map<std::string, at::Tensor> tensors;
  std::string text;
};

/// What a rank function knows of itself. torchrun's variables are set; the
/// function calls `comm::init_process_group` where it needs a group.
class RankProcess {
 public:
  RankProcess(
      int64_t rank,
      int64_t world_size,
      std::string argument,
      std::function<void(const std::string&)> note_doing);

  int64_t rank() const;
  int64_t world_size() const;
  /// `RunProcessesOptions::argument`.
  const std::string& argument() const;
  /// Says what the rank does from now on: for the message at the deadline, and
  /// for `RunProcessesOptions::kill`.
  void doing(const std::string& what) const;

 private:
  int64_t rank_;
  int64_t world_size_;
  std::string argument_;
  std::function<void(const std::string&)> note_doing_;
};

using RankFunction = RankResult (*)(RankProcess&);

/// Makes `function` known by `name` to `run_processes`, in the test binary and
/// in the copies of itself that it starts.
class RankFunctionRegistration {
 public:
  RankFunctionRegistration(const char* name, RankFunction function);
};

/// Defines the rank function `name`, with a body that uses `process`:
/// ```cpp
/// TANDEM_RANK_FUNCTION(sum_of_ranks) {
///   tandem::comm::init_process_group();
///   auto tensor = torch::full({4}, process.rank() + 1.0);
///   process.doing("all-reduce");
///   tandem::comm::all_reduce(tensor);
///   return {{{"sum", tensor}}, ""};
/// }
/// ```
#define TANDEM_RANK_FUNCTION(name)                         \
  static ::tandem::testing::RankResult name(               \
      ::tandem::testing::RankProcess& process);            \
  static const ::tandem::testing::RankFunctionRegistration \
      name##_registration(#name, name);                    \
  static ::tandem::testing::RankResult name(               \
      [[maybe_unused]] ::tandem::testing::RankProcess& process)

/// To be called first in `main` of a binary that calls `run_processes`: a copy
/// started as a rank runs its function here. Returns the exit code that `main`
/// must return then, nothing in the binary that was started by a user.
std::optional<int> rank_process_main();

/// Sends `signal` to rank `rank`'s process as soon as that rank says `doing`.
struct KillRank {
  int64_t rank = 0;
  std::string doing;
  int signal = SIGKILL;
};

struct RunProcessesOptions {
  /// Limit for all ranks to end; then they are killed.
  TORCH_ARG(std::chrono::milliseconds, deadline) = std::chrono::seconds(30);
  /// Variables set for every rank, over this process's and torchrun's. An empty
  /// text is a variable that is set and empty.
  TORCH_ARG(comm::Environment, environment);
  /// Handed to every rank.
  TORCH_ARG(std::string, argument);
  TORCH_ARG(std::optional<KillRank>, kill);
};

/// How a rank's process ended.
struct RankOutcome {
  /// Absent if the function threw or the process was ended.
  std::optional<RankResult> result;
  /// Text of what the function threw; empty if it did not.
  std::string error;
  comm::ExitStatus status;
  /// What the rank said last that it was doing.
  std::string last_doing;

  bool success() const {
    return result.has_value() && status.success();
  }
};

/// Runs the rank function `function` as each rank of a world: every rank is a
/// process, a copy of this binary that is executed anew (no fork of a process
/// with threads), and leads a process group of its own, all of which is killed
/// when the rank has ended. Ranks meet in a store that this process serves on
/// the loopback interface, and die with this process. OMP_NUM_THREADS is 1
/// unless it is set.
///
/// **Throws** `TimeoutError` if the ranks miss the deadline, saying what each
/// was doing last; `Error` if a rank did not succeed, saying how each ended;
/// `ConfigError` if there is no such function.
std::vector<RankResult> run_processes(
    int64_t world_size,
    const std::string& function,
    const RunProcessesOptions& options = {});

/// As `run_processes`, for ranks that are expected to fail or die: returns how
/// each ended.
std::vector<RankOutcome> try_processes(
    int64_t world_size,
    const std::string& function,
    const RunProcessesOptions& options = {});

} // namespace tandem::testing
