#include "rank_set.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "error_record.h"

namespace tandem::comm::launch {

RankSet::Rank::Rank(
    int64_t rank,
    const Program& program,
    std::string file,
    const RankSet& set)
    : index(rank),
      error_file(std::move(file)),
      process(program, set.guard_, set.signal_mask_),
      output(
          process.take_output(),
          fmt::format("[rank {}] ", index),
          tail,
          set.output_),
      error(
          process.take_error(),
          fmt::format("[rank {}] ", index),
          tail,
          set.error_) {}

RankFailure RankSet::Rank::failure(const ExitStatus& status) {
  RankFailure failure;
  failure.rank = index;
  failure.pid = process.pid();
  failure.status = status;
  failure.time = std::chrono::system_clock::now();
  for (auto* stream : {&output, &error}) {
    stream->pass_on_all();
  }
  failure.last_lines = tail.lines();
  if (auto record = read_error_file(error_file)) {
    failure.error = std::move(record->message);
    failure.time = record->time;
  }
  return failure;
}

RankSet::RankSet(
    const Guard& guard,
    const sigset_t& signal_mask,
    OutputQueue& output,
    OutputQueue& error)
    : guard_(guard),
      signal_mask_(signal_mask),
      output_(output),
      error_(error) {}

void RankSet::start(
    int64_t rank,
    const Program& program,
    std::string error_file) {
  ranks_.emplace_back(rank, program, std::move(error_file), *this);
}

std::vector<RankStream*> RankSet::open_streams() {
  std::vector<RankStream*> streams;
  for (auto& rank : ranks_) {
    for (auto* stream : {&rank.output, &rank.error}) {
      if (stream->fd() >= 0 && !stream->out().full()) {
        streams.push_back(stream);
      }
    }
  }
  return streams;
}

std::vector<RankFailure> RankSet::take_failures() {
  std::vector<RankFailure> failures;
  for (auto& rank : ranks_) {
    const auto status = rank.process.poll_exit();
    if (status && !status->success()) {
      failures.push_back(rank.failure(*status));
    }
  }
  return failures;
}

void RankSet::signal_all(int signal) const {
  for (const auto& rank : ranks_) {
    rank.process.signal_group(signal);
  }
}

bool RankSet::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.process.ended();
  });
}

bool RankSet::all_gone() {
  bool gone = true;
  for (auto& rank : ranks_) {
    gone = rank.process.poll_group_gone() && gone;
  }
  return gone;
}

void RankSet::finish_output() {
  for (auto& rank : ranks_) {
    rank.output.finish();
    rank.error.finish();
  }
}

} // namespace tandem::comm::launch
