#include "launch_session.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "failure_order.h"
#include "failure_report.h"
#include "follower.h"
#include "leader.h"
#include "program_path.h"

namespace tandem::comm::launch {

namespace {

using Clock = std::chrono::steady_clock;

// How often groups are looked at whose leader has ended: nothing announces the
// end of the others.
constexpr int kTickMs = 100;
// For SIGKILL to take effect; and for a reader of the output, after Ctrl-C.
constexpr auto kKillLimit = std::chrono::seconds(1);

bool same_file(int a, int b) {
  struct stat of_a {};
  struct stat of_b {};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 &&
      of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

std::string search_path_of_this_process() {
  const char* const path = std::getenv("PATH");
  return path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path;
}

std::unique_ptr<Coordination> make_coordination(const LaunchOptions& options) {
  if (options.node_rank() == 0) {
    return std::make_unique<Leader>(options);
  }
  return std::make_unique<Follower>(options);
}

} // namespace

LaunchSession::LaunchSession(const LaunchOptions& options)
    : options_(options),
      error_folder_(options.num_ranks()),
      guard_(
          static_cast<std::size_t>(options.num_ranks()),
          error_folder_.paths()),
      output_(options.output_fd()),
      separate_error_(options.error_fd()),
      error_(
          same_file(options.output_fd(), options.error_fd()) ? output_
                                                             : separate_error_),
      coordination_(make_coordination(options)),
      policy_(options.grace()) {}

LaunchResult LaunchSession::run() {
  try {
    return run_attempts();
  } catch (...) {
    coordination_->tell_error(message_of(std::current_exception()));
    throw;
  }
}

LaunchResult LaunchSession::run_attempts() {
  environment_ = base_environment();
  std::optional<Finish> finish;
  while (!(finish = next_finish())) {
    if (const auto start = coordination_->take_start()) {
      announce_restart(*start);
      coordination_->tell_end(run_attempt(start->rendezvous));
    } else {
      move_output();
      coordination_->step();
      take_signals();
    }
    if (const auto line = coordination_->take_note()) {
      note(*line);
    }
  }
  error_.text() += report(*finish, options_);
  finish_output();
  return std::move(finish->result);
}

std::optional<Finish> LaunchSession::next_finish() {
  auto finish = coordination_->take_finish();
  if (!finish && num_own_interrupts_ > 1) {
    finish = interrupted_before_start(interrupted_by_); // others need not know
  }
  return finish;
}

void LaunchSession::note(const std::string& line) {
  error_.text() += fmt::format("[{}] {}\n", options_.name(), line);
}

Environment LaunchSession::base_environment() {
  auto environment = current_environment();
  for (const auto& [name, value] : options_.environment()) {
    environment.insert_or_assign(name, value);
  }
  if (environment.emplace("OMP_NUM_THREADS", "1").second) {
    note("OMP_NUM_THREADS is not set: each rank gets OMP_NUM_THREADS=1");
  }
  const auto num_cores = std::thread::hardware_concurrency();
  if (num_cores != 0 && std::cmp_greater(options_.num_ranks(), num_cores)) {
    note(fmt::format(
        "{} ranks share {} cores: expect no speed-up beyond that",
        options_.num_ranks(),
        num_cores));
  }
  return environment;
}

AttemptEnd LaunchSession::run_attempt(const Rendezvous& rendezvous) {
  policy_ = StopPolicy(options_.grace());
  if (interrupted_by_ != 0) {
    policy_.on_interrupt(interrupted_by_); // while no rank was there
  }
  failures_.clear();
  start_ranks(rendezvous);
  while (!over()) {
    move_output();
    coordination_->step();
    take_signals();
    take_exits();
    if (coordination_->stop_asked()) {
      policy_.on_end(Clock::now());
    }
    send_due_signal();
  }
  ranks_->finish_output();
  AttemptEnd end{
      std::exchange(failures_, {}),
      interrupted_by_,
      ranks_->all_gone(),
      /*node_failure=*/""};
  sort_by_cause(end.failures);
  return end;
}

void LaunchSession::start_ranks(const Rendezvous& rendezvous) {
  // Not before all launchers have met: they are told if there is none here.
  const auto path =
      find_program(options_.command().front(), search_path_of_this_process());
  error_folder_.clear();
  ranks_.emplace(guard_, signals_.previous_mask(), output_, error_);
  for (int64_t rank = 0; rank < options_.num_ranks(); ++rank) {
    const auto error_file = error_folder_.file_of(rank);
    ranks_->start(
        rendezvous.first_rank + rank,
        Program{
            path,
            options_.command(),
            rank_environment(environment_, rendezvous, rank, error_file)},
        error_file);
  }
}

void LaunchSession::move_output() {
  std::vector<pollfd> watched{{signals_.fd(), POLLIN, 0}};
  std::vector<OutputQueue*> queues;
  for (auto* queue : {&output_, &separate_error_}) {
    if (!queue->empty()) {
      queues.push_back(queue);
      watched.push_back({queue->fd(), POLLOUT, 0});
    }
  }
  const auto streams =
      ranks_ ? ranks_->open_streams() : std::vector<RankStream*>();
  for (auto* stream : streams) {
    watched.push_back({stream->fd(), POLLIN, 0});
  }
  std::vector<int> waking;
  coordination_->add_fds(waking);
  for (const int fd : waking) {
    watched.push_back({fd, POLLIN, 0});
  }
  if (::poll(watched.data(), watched.size(), kTickMs) <= 0) {
    return;
  }
  auto ready = watched.begin() + 1; // what only wakes is at the end
  for (auto* queue : queues) {
    if ((ready++)->revents != 0) {
      queue->write_some();
    }
  }
  for (auto* stream : streams) {
    if ((ready++)->revents != 0) {
      stream->pass_on();
    }
  }
}

void LaunchSession::take_signals() {
  for (const int signal : signals_.take()) {
    if (signal == SIGCHLD) {
      continue;
    }
    // The first one is perhaps the same that another host's launcher got.
    if (++num_own_interrupts_ > 1 || interrupted_by_ == 0) {
      interrupt(signal);
    }
  }
  if (const int signal = coordination_->interrupt_asked();
      signal != 0 && interrupted_by_ == 0) {
    interrupt(signal);
  }
}

void LaunchSession::interrupt(int signal) {
  policy_.on_interrupt(signal);
  if (interrupted_by_ == 0) {
    interrupted_by_ = signal;
    coordination_->tell_interrupt(signal);
  }
}

void LaunchSession::take_exits() {
  const bool told_to_end = policy_.ending();
  auto seen = ranks_->take_failures();
  const bool failed = !seen.empty();
  for (auto& failure : seen) {
    // One that was told to end, and did, has not failed.
    if (!told_to_end || !failure.error.empty()) {
      failure.node_rank = options_.node_rank();
      failures_.push_back(std::move(failure));
    }
  }
  if (failed) {
    coordination_->tell_failure();
  }
  if (failed || (ranks_->all_ended() && !ranks_->all_gone())) {
    policy_.on_end(Clock::now());
  }
}

void LaunchSession::send_due_signal() {
  if (const auto signal = policy_.due(Clock::now())) {
    ranks_->signal_all(*signal);
  }
}

bool LaunchSession::over() {
  const auto killed_at = policy_.killed_at();
  return ranks_->all_gone() ||
      (killed_at && Clock::now() > *killed_at + kKillLimit);
}

void LaunchSession::announce_restart(const Start& start) {
  const auto attempt = start.rendezvous.attempt;
  if (attempt == 0) {
    return;
  }
  error_.text() += describe(start.failures, options_);
  note(fmt::format(
      "restart {} of at most {}: all ranks start again",
      attempt,
      start.rendezvous.max_restarts));
}

void LaunchSession::finish_output() {
  const auto limit = Clock::now() + kKillLimit;
  while (!output_.empty() || !separate_error_.empty()) {
    move_output();
    take_signals();
    if (interrupted_by_ != 0 && Clock::now() > limit) {
      return;
    }
  }
}

} // namespace tandem::comm::launch
