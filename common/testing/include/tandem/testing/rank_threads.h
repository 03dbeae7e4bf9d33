#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <c10/core/Device.h>
#include <torch/arg.h>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>

namespace tandem::testing {

struct RunRanksOptions {
  /// Limit for all ranks to end; a test that hangs costs so much.
  TORCH_ARG(std::chrono::milliseconds, deadline) = std::chrono::seconds(30);
  /// Limit of each collective. Below the deadline, so that a rank that does not
  /// come is named by an error of the others.
  TORCH_ARG(std::chrono::milliseconds, timeout) = std::chrono::seconds(20);
  /// Limit for all ranks to meet, and to answer in agreements.
  TORCH_ARG(std::chrono::milliseconds, startup_timeout) =
      std::chrono::seconds(20);
  /// Where the ranks' models live.
  TORCH_ARG(at::Device, device) = at::kCPU;
  /// Nothing: as the environment says.
  TORCH_ARG(std::optional<comm::Diagnostics>, diagnostics);
};

/// What a function that `run_ranks` runs knows of itself.
class RankContext {
 public:
  RankContext(
      std::shared_ptr<comm::ProcessGroup> group,
      std::function<void(std::string)> note_doing);

  int64_t rank() const;
  int64_t world_size() const;
  /// The rank's group, which is its thread's default group too.
  const std::shared_ptr<comm::ProcessGroup>& group() const;
  /// Says what the rank does from now on, for the message at the deadline.
  void doing(std::string what) const;

 private:
  std::shared_ptr<comm::ProcessGroup> group_;
  std::function<void(std::string)> note_doing_;
};

/// The process's exit code when ranks as threads miss their deadline.
inline constexpr int kDeadlineExitCode = 86;

namespace detail {

/// Runs `function` in one thread per rank. Returns each rank's error, null if
/// it had none; `first`, if not null, becomes the rank that failed first.
std::vector<std::exception_ptr> run_rank_threads(
    int64_t world_size,
    const std::function<void(RankContext&)>& function,
    const RunRanksOptions& options,
    std::optional<int64_t>* first);

/// Throws `error` as it is, with the rank added to its text where that can be
/// done without changing its type.
[[noreturn]] void rethrow_from_rank(
    const std::exception_ptr& error,
    int64_t rank);

} // namespace detail

/// Runs `function(RankContext&)` as each rank of a world: every rank is a thread
/// with a group of its own (Gloo over the loopback interface, the ranks meet in
/// memory), set as the thread's default group. Returns the ranks' results, or
/// nothing if `function` returns nothing.
///
/// Ranks share what belongs to the process: the default dtype and generators
/// (draw whole-world data from a generator of your own), and the memory that
/// `function` captures. A rank that throws drops its group, so that the others'
/// collectives fail instead of waiting for it.
///
/// Threads cannot be ended from outside: if the ranks miss the deadline, it is
/// printed what each was doing last, and the process exits at once with
/// `kDeadlineExitCode`.
///
/// **Throws** the error of the rank that failed first, with its rank added.
///
/// Example:
/// ```cpp
/// auto sums = tandem::testing::run_ranks(3, [](auto& context) {
///   auto tensor = torch::full({4}, context.rank() + 1.0);
///   context.doing("all-reduce");
///   tandem::comm::all_reduce(tensor);
///   return tensor;
/// });
/// ```
template <typename Function>
auto run_ranks(
    int64_t world_size,
    Function function,
    const RunRanksOptions& options = {}) {
  using Result = std::invoke_result_t<Function&, RankContext&>;
  constexpr bool returns_nothing = std::is_void_v<Result>;
  using Stored = std::conditional_t<returns_nothing, char, Result>;
  std::vector<std::optional<Stored>> stored(static_cast<size_t>(world_size));
  std::optional<int64_t> first;
  const auto errors = detail::run_rank_threads(
      world_size,
      [&](RankContext& context) {
        if constexpr (returns_nothing) {
          function(context);
        } else {
          stored[static_cast<size_t>(context.rank())].emplace(
              function(context));
        }
      },
      options,
      &first);
  if (first) {
    detail::rethrow_from_rank(errors[static_cast<size_t>(*first)], *first);
  }
  if constexpr (!returns_nothing) {
    std::vector<Result> results;
    for (auto& result : stored) {
      results.push_back(std::move(*result));
    }
    return results;
  }
}

/// As `run_ranks`, for functions that are expected to fail: returns each rank's
/// error, null if it had none.
template <typename Function>
std::vector<std::exception_ptr> try_ranks(
    int64_t world_size,
    Function function,
    const RunRanksOptions& options = {}) {
  return detail::run_rank_threads(
      world_size,
      [&](RankContext& context) { function(context); },
      options,
      nullptr);
}

} // namespace tandem::testing
