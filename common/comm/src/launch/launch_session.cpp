#include "launch_session.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "failure_report.h"

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

std::string random_run_id() {
  std::random_device random;
  return fmt::format("tandem-{:08x}{:08x}", random(), random());
}

} // namespace

LaunchSession::Rank::Rank(
    int64_t rank,
    const Program& program,
    const Guard& guard,
    const sigset_t& signal_mask,
    OutputQueue& output_queue,
    OutputQueue& error_queue)
    : index(rank),
      process(program, guard, signal_mask),
      output(
          process.take_output(),
          fmt::format("[rank {}] ", index),
          tail,
          output_queue),
      error(
          process.take_error(),
          fmt::format("[rank {}] ", index),
          tail,
          error_queue) {}

LaunchSession::LaunchSession(const LaunchOptions& options, std::string path)
    : options_(options),
      path_(std::move(path)),
      guard_(static_cast<std::size_t>(options.num_ranks())),
      output_(options.output_fd()),
      separate_error_(options.error_fd()),
      error_(
          same_file(options.output_fd(), options.error_fd()) ? output_
                                                             : separate_error_),
      policy_(options.grace()) {}

LaunchResult LaunchSession::run() {
  start_ranks();
  while (!over()) {
    move_output(/*from_ranks=*/true);
    take_signals();
    take_exits();
    send_due_signal();
  }
  finish_output();
  return result_;
}

void LaunchSession::note(const std::string& line) {
  error_.text() += fmt::format("[{}] {}\n", options_.name(), line);
}

void LaunchSession::start_ranks() {
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
  const Rendezvous rendezvous{
      options_.num_ranks(),
      store_.address(),
      store_.port(),
      random_run_id()};
  for (int64_t rank = 0; rank < options_.num_ranks(); ++rank) {
    ranks_.emplace_back(
        rank,
        Program{
            path_,
            options_.command(),
            rank_environment(environment, rendezvous, rank)},
        guard_,
        signals_.previous_mask(),
        output_,
        error_);
  }
}

void LaunchSession::move_output(bool from_ranks) {
  std::vector<pollfd> watched{{signals_.fd(), POLLIN, 0}};
  std::vector<RankStream*> streams;
  std::vector<OutputQueue*> queues;
  for (auto* queue : {&output_, &separate_error_}) {
    if (!queue->empty()) {
      queues.push_back(queue);
      watched.push_back({queue->fd(), POLLOUT, 0});
    }
  }
  for (auto& rank : ranks_) {
    for (auto* stream : {&rank.output, &rank.error}) {
      if (from_ranks && stream->fd() >= 0 && !stream->out().full()) {
        streams.push_back(stream);
        watched.push_back({stream->fd(), POLLIN, 0});
      }
    }
  }
  if (::poll(watched.data(), watched.size(), kTickMs) <= 0) {
    return;
  }
  auto ready = watched.begin() + 1;
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
    if (signal != SIGCHLD) {
      policy_.on_interrupt(signal);
    }
  }
  result_.interrupted_by = policy_.interrupted_by();
}

void LaunchSession::take_exits() {
  std::vector<std::pair<Rank*, ExitStatus>> failures;
  for (auto& rank : ranks_) {
    const auto status = rank.process.poll_exit();
    if (status && !status->success()) {
      failures.emplace_back(&rank, *status);
    }
  }
  // Of those seen together, one that was killed: the others may have failed
  // because it was gone.
  const auto first = std::max_element(
      failures.begin(),
      failures.end(),
      [](const auto& a, const auto& b) {
        return a.second.signal == 0 && b.second.signal != 0;
      });
  if (first != failures.end()) {
    record_failure(*first->first, first->second);
    policy_.on_end(Clock::now());
  } else if (all_ended() && !all_gone()) {
    policy_.on_end(Clock::now());
  }
}

void LaunchSession::record_failure(Rank& rank, const ExitStatus& status) {
  if (result_.first_failure) {
    return;
  }
  for (auto* stream : {&rank.output, &rank.error}) {
    stream->pass_on_all();
  }
  result_.exit_code = status.shell_code();
  result_.first_failure =
      RankFailure{rank.index, rank.process.pid(), status, rank.tail.lines()};
}

void LaunchSession::send_due_signal() {
  if (const auto signal = policy_.due(Clock::now())) {
    for (const auto& rank : ranks_) {
      rank.process.signal_group(*signal);
    }
  }
}

bool LaunchSession::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.process.ended();
  });
}

bool LaunchSession::all_gone() {
  bool gone = true;
  for (auto& rank : ranks_) {
    gone = rank.process.poll_group_gone() && gone;
  }
  return gone;
}

bool LaunchSession::over() {
  const auto killed_at = policy_.killed_at();
  return all_gone() || (killed_at && Clock::now() > *killed_at + kKillLimit);
}

void LaunchSession::finish_output() {
  for (auto& rank : ranks_) {
    rank.output.finish();
    rank.error.finish();
  }
  error_.text() += report(result_, options_.name());
  const auto limit = Clock::now() + kKillLimit;
  while (!output_.empty() || !separate_error_.empty()) {
    move_output(/*from_ranks=*/false);
    take_signals();
    if (policy_.interrupted_by() != 0 && Clock::now() > limit) {
      return;
    }
  }
}

} // namespace tandem::comm::launch
