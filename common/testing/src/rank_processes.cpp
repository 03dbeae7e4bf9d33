#include <tandem/testing/rank_processes.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tandem/comm/local_rendezvous.h>
#include <tandem/core/errors.h>

#include "rank_child.h"
#include "rank_registry.h"

namespace tandem::testing {

namespace {

// How often it is looked whether a rank that has closed its pipe has ended.
constexpr std::chrono::milliseconds kPollPause{10};

std::string describe_end(const RankOutcome& outcome) {
  if (outcome.success()) {
    return "succeeded";
  }
  if (outcome.status.signal != 0) {
    return fmt::format(
        "was ended by signal {} while in: {}",
        outcome.status.signal,
        outcome.last_doing);
  }
  return fmt::format(
      "exited with {} while in: {} {}",
      outcome.status.code,
      outcome.last_doing,
      outcome.error);
}

/// The ranks' processes, from their start to their end.
class RankChildren {
 public:
  RankChildren(
      int64_t world_size,
      const std::string& function,
      const RunProcessesOptions& options)
      : options_(options), rendezvous_(world_size), to_kill_(options.kill()) {
    for (int64_t rank = 0; rank < world_size; ++rank) {
      children_.push_back(
          std::make_unique<detail::RankChild>(environment_of(rank, function)));
    }
  }

  void run() {
    const auto deadline =
        std::chrono::steady_clock::now() + options_.deadline();
    while (!all_ended()) {
      if (std::chrono::steady_clock::now() > deadline) {
        throw_missed_deadline();
      }
      read_pipes();
      kill_if_due();
    }
  }

  std::vector<RankOutcome> outcomes() const {
    std::vector<RankOutcome> outcomes;
    for (const auto& child : children_) {
      outcomes.push_back(child->outcome());
    }
    return outcomes;
  }

 private:
  comm::Environment environment_of(int64_t rank, const std::string& function)
      const {
    auto variables = rendezvous_.environment_of(rank);
    variables.emplace("OMP_NUM_THREADS", "1");
    for (const auto& [name, value] : options_.environment()) {
      variables[name] = value;
    }
    variables[detail::kFunctionVariable] = function;
    variables[detail::kArgumentVariable] = options_.argument();
    variables[detail::kParentVariable] = std::to_string(::getpid());
    return variables;
  }

  bool all_ended() {
    return std::all_of(children_.begin(), children_.end(), [](auto& child) {
      // What was written before the end is still to be read.
      return child->poll_exit() && child->pipe() < 0;
    });
  }

  void read_pipes() {
    std::vector<pollfd> polls;
    for (const auto& child : children_) {
      polls.push_back({child->pipe(), POLLIN, 0}); // negative ones are ignored
    }
    ::poll(polls.data(), polls.size(), static_cast<int>(kPollPause.count()));
    for (size_t rank = 0; rank < polls.size(); ++rank) {
      if (polls[rank].revents != 0) {
        children_[rank]->read_pipe();
      }
    }
  }

  void kill_if_due() {
    if (!to_kill_) {
      return;
    }
    auto& child = *children_.at(static_cast<size_t>(to_kill_->rank));
    if (child.outcome().last_doing == to_kill_->doing) {
      child.signal_group(to_kill_->signal);
      to_kill_.reset();
    }
  }

  [[noreturn]] void throw_missed_deadline() {
    auto text = fmt::format(
        "run_processes: deadline of {} ms missed",
        options_.deadline().count());
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      auto& child = *children_[rank];
      text += fmt::format(
          "\n  rank {} {}",
          rank,
          child.poll_exit() ? describe_end(child.outcome())
                            : "was in: " + child.outcome().last_doing);
    }
    throw TimeoutError(text);
  }

  const RunProcessesOptions& options_;
  comm::LocalRendezvous rendezvous_;
  std::optional<KillRank> to_kill_;
  std::vector<std::unique_ptr<detail::RankChild>> children_;
};

} // namespace

std::vector<RankOutcome> try_processes(
    int64_t world_size,
    const std::string& function,
    const RunProcessesOptions& options) {
  detail::find_rank_function(function);
  RankChildren children(world_size, function, options);
  children.run();
  return children.outcomes();
}

std::vector<RankResult> run_processes(
    int64_t world_size,
    const std::string& function,
    const RunProcessesOptions& options) {
  auto outcomes = try_processes(world_size, function, options);
  std::vector<RankResult> results;
  std::string failures;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].success()) {
      results.push_back(std::move(*outcomes[rank].result));
    } else {
      failures +=
          fmt::format("\n  rank {} {}", rank, describe_end(outcomes[rank]));
    }
  }
  if (!failures.empty()) {
    throw Error("run_processes: ranks failed:" + failures);
  }
  return results;
}

} // namespace tandem::testing
