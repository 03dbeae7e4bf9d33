#include <tandem/testing/rank_threads.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <tandem/comm/backend.h>
#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>

#include "rank_board.h"

namespace tandem::testing {

RankContext::RankContext(
    std::shared_ptr<comm::ProcessGroup> group,
    std::function<void(std::string)> note_doing)
    : group_(std::move(group)), note_doing_(std::move(note_doing)) {}

int64_t RankContext::rank() const {
  return group_->rank();
}

int64_t RankContext::world_size() const {
  return group_->size();
}

const std::shared_ptr<comm::ProcessGroup>& RankContext::group() const {
  return group_;
}

void RankContext::doing(std::string what) const {
  note_doing_(std::move(what));
}

namespace detail {

namespace {

/// Runs the ranks' threads over one store in memory.
class RankThreads {
 public:
  RankThreads(
      int64_t world_size,
      const std::function<void(RankContext&)>& function,
      const RunRanksOptions& options)
      : function_(function),
        options_(options),
        board_(world_size),
        store_(c10::make_intrusive<c10d::HashStore>()),
        groups_(static_cast<size_t>(world_size)) {}

  void run() {
    std::vector<std::thread> threads;
    threads.reserve(groups_.size());
    for (int64_t rank = 0; rank < board_.world_size(); ++rank) {
      threads.emplace_back([this, rank] { run_rank(rank); });
    }
    if (!board_.wait_for_all(options_.deadline())) {
      exit_at_deadline();
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }

  RankBoard& board() {
    return board_;
  }

 private:
  void run_rank(int64_t rank) {
    std::exception_ptr error;
    try {
      auto group = connect(rank);
      const comm::ScopedGroup scope(group);
      board_.note_doing(rank, "its function");
      RankContext context(group, [this, rank](std::string what) {
        board_.note_doing(rank, std::move(what));
      });
      function_(context);
      // Kept until all ranks have ended, since peers may still be reading what
      // this one sent. After an error it is dropped, so that they fail.
      groups_[static_cast<size_t>(rank)] = std::move(group);
    } catch (...) {
      error = std::current_exception();
    }
    board_.note_end(rank, error);
  }

  std::shared_ptr<comm::ProcessGroup> connect(int64_t rank) {
    board_.note_doing(rank, "connecting");
    comm::BackendRequest request;
    request.store = store_;
    request.rank = rank;
    request.size = board_.world_size();
    request.device = options_.device();
    request.timeout = options_.timeout();
    request.startup_timeout = options_.startup_timeout();
    request.diagnostics = options_.diagnostics();
    return comm::connect_group(request);
  }

  [[noreturn]] void exit_at_deadline() {
    fmt::print(
        stderr,
        "run_ranks: deadline of {} ms missed\n{}",
        options_.deadline().count(),
        board_.describe());
    std::fflush(nullptr);
    std::_Exit(kDeadlineExitCode);
  }

  const std::function<void(RankContext&)>& function_;
  const RunRanksOptions& options_;
  RankBoard board_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<std::shared_ptr<comm::ProcessGroup>> groups_;
};

} // namespace

std::vector<std::exception_ptr> run_rank_threads(
    int64_t world_size,
    const std::function<void(RankContext&)>& function,
    const RunRanksOptions& options,
    std::optional<int64_t>* first) {
  if (world_size < 1) {
    throw ConfigError(fmt::format(
        "run_ranks: expected a world size of 1 or more, got {}",
        world_size));
  }
  RankThreads threads(world_size, function, options);
  threads.run();
  if (first != nullptr) {
    *first = threads.board().first_to_fail();
  }
  return threads.board().errors();
}

void rethrow_from_rank(const std::exception_ptr& error, int64_t rank) {
  try {
    std::rethrow_exception(error);
  } catch (c10::Error& exception) {
    exception.add_context(fmt::format("thrown by rank {}", rank));
    throw;
  }
}

} // namespace detail
} // namespace tandem::testing
