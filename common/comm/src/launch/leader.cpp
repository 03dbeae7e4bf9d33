#include "leader.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "failure_order.h"
#include "node_messages.h"
#include "text.h"

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// A wait of less is nothing to speak of.
constexpr auto kSilentWait = std::chrono::seconds(5);
// For the others to read that it is over.
constexpr auto kLeaveLimit = std::chrono::seconds(1);

std::string random_run_id() {
  std::random_device random;
  return fmt::format("tandem-{:08x}{:08x}", random(), random());
}

std::string nodes_text(const std::vector<int64_t>& ranks) {
  return fmt::format(
      "{} {}",
      ranks.size() == 1 ? "node" : "nodes",
      fmt::join(ranks, ", "));
}

} // namespace

Leader::Leader(const LaunchOptions& options)
    : options_(options),
      run_id_(random_run_id()),
      roster_(options),
      restarts_(options.max_restarts()),
      begin_(Clock::now()),
      ends_(static_cast<std::size_t>(options.num_nodes())) {
  meet(begin_);
}

void Leader::add_fds(std::vector<int>& fds) const {
  roster_.add_fds(fds);
}

void Leader::step() {
  const auto now = Clock::now();
  for (const auto& news : roster_.exchange(now)) {
    take_news(news);
  }
  if (phase_ == Phase::kMeeting) {
    meet(now);
  }
}

std::optional<Start> Leader::take_start() {
  if (phase_ != Phase::kStarting) {
    return std::nullopt;
  }
  if (!node_failure_.empty()) { // lost since the last attempt
    leave({restarts_.abandoned(node_failure_), failures_});
    return std::nullopt;
  }
  phase_ = Phase::kRunning;
  std::fill(ends_.begin(), ends_.end(), std::nullopt);
  // The store before is still there: so the port is another.
  store_ = options_.num_nodes() == 1
      ? std::make_unique<AgentStore>()
      : std::make_unique<AgentStore>(options_.master_addr());
  Start start{
      {.num_nodes = options_.num_nodes(),
       .address = store_->address(),
       .port = store_->port(),
       .run_id = run_id_,
       .attempt = restarts_.attempt(),
       .max_restarts = options_.max_restarts()},
      failures_};
  auto& rendezvous = start.rendezvous;
  rendezvous.num_ranks = 0;
  for (int64_t node = 0; node < options_.num_nodes(); ++node) {
    rendezvous.num_ranks += num_ranks_of(node);
  }
  auto first_rank = rendezvous.num_ranks;
  for (int64_t node = options_.num_nodes() - 1; node >= 0; --node) {
    first_rank -= num_ranks_of(node);
    rendezvous.node_rank = node;
    rendezvous.first_rank = first_rank;
    rendezvous.num_local_ranks = num_ranks_of(node);
    if (node > 0) {
      roster_.send(node, to_message(start));
    }
  }
  return start; // as it is for node 0
}

std::optional<Finish> Leader::take_finish() {
  const bool over = phase_ == Phase::kLeaving &&
      (std::cmp_equal(roster_.missing().size(), options_.num_nodes() - 1) ||
       Clock::now() > leave_until_);
  return over ? std::exchange(finish_, std::nullopt) : std::nullopt;
}

std::optional<std::string> Leader::take_note() {
  if (phase_ != Phase::kMeeting || told_waiting_ ||
      Clock::now() - begin_ < kSilentWait) {
    return std::nullopt;
  }
  told_waiting_ = true;
  const auto address = roster_.address();
  const bool loopback = address.starts_with("127.") || address == "::1";
  return fmt::format(
      "node 0 waits at {} port {} for {}{}",
      address,
      options_.master_port(),
      nodes_text(roster_.missing()),
      loopback ? "; no other host can reach that address" : "");
}

void Leader::tell_failure() {
  stop_all();
}

void Leader::tell_interrupt(int signal) {
  if (interrupted_by_ != 0) {
    return;
  }
  interrupted_by_ = signal;
  roster_.send_all({{"type", "interrupt"}, {"signal", signal}});
  if (phase_ == Phase::kMeeting) {
    leave(interrupted_before_start(signal));
  }
}

void Leader::tell_end(const AttemptEnd& end) {
  note_end(0, end);
}

void Leader::tell_error(const std::string& why) {
  roster_.send_all({{"type", "gone"}, {"why", why}});
}

void Leader::take_news(const NodeRoster::News& news) {
  try {
    for (const auto& message : news.messages) {
      take_message(news.node_rank, message);
    }
  } catch (const Json::exception& error) {
    roster_.drop(news.node_rank);
    lose(
        news.node_rank,
        fmt::format("node {}: {}", news.node_rank, error.what()));
  }
  if (!news.why_lost.empty()) {
    lose(news.node_rank, news.why_lost);
  }
}

void Leader::take_message(int64_t node_rank, const Json& message) {
  const auto type = message.at("type").get<std::string>();
  if (type == "failure") {
    stop_all();
  } else if (type == "interrupt") {
    tell_interrupt(message.at("signal").get<int>());
  } else if (type == "end") {
    note_end(node_rank, read_end(message));
  } else if (type == "gone") {
    roster_.drop(node_rank);
    lose(
        node_rank,
        fmt::format(
            "node {}: its launcher failed: {}",
            node_rank,
            message.at("why").get<std::string>()));
  }
}

void Leader::meet(Time now) {
  const auto missing = roster_.missing();
  if (missing.empty()) {
    roster_.close();
    phase_ = Phase::kStarting;
  } else if (now - begin_ > options_.meet_timeout()) {
    AttemptEnd end;
    end.node_failure = fmt::format(
        "{}: expected at {} port {} within {}, got nothing. Start tandem "
        "launch on each with the same --nnodes, --master-addr and "
        "--master-port",
        nodes_text(missing),
        roster_.address(),
        options_.master_port(),
        format_limit(options_.meet_timeout()));
    leave({restarts_.after(end).value(), {}});
  }
}

void Leader::lose(int64_t node_rank, const std::string& why) {
  if (phase_ != Phase::kRunning && phase_ != Phase::kStarting) {
    return; // it may come again, or has been told that it may go
  }
  if (node_failure_.empty()) {
    node_failure_ = why;
  }
  stop_all();
  AttemptEnd unknown;
  unknown.clean = false;
  note_end(node_rank, std::move(unknown));
}

void Leader::stop_all() {
  if (!std::exchange(stopping_, true)) {
    roster_.send_all({{"type", "stop"}});
  }
}

void Leader::note_end(int64_t node_rank, AttemptEnd end) {
  auto& known = ends_.at(static_cast<std::size_t>(node_rank));
  if (!known) {
    known = std::move(end);
  }
  const bool all =
      std::all_of(ends_.begin(), ends_.end(), [](const auto& node_end) {
        return node_end.has_value();
      });
  if (all && phase_ == Phase::kRunning) {
    conclude();
  }
}

void Leader::conclude() {
  AttemptEnd all;
  all.interrupted_by = interrupted_by_;
  all.node_failure = node_failure_;
  for (const auto& end : ends_) {
    all.failures.insert(
        all.failures.end(),
        end->failures.begin(),
        end->failures.end());
    all.clean = all.clean && end->clean;
  }
  sort_by_cause(all.failures);
  failures_ = all.failures;
  if (auto result = restarts_.after(all)) {
    leave({std::move(*result), failures_});
  } else {
    stopping_ = false;
    phase_ = Phase::kStarting;
  }
}

void Leader::leave(Finish finish) {
  phase_ = Phase::kLeaving;
  leave_until_ = Clock::now() + kLeaveLimit;
  roster_.send_all(to_message(finish));
  finish_ = std::move(finish);
}

int64_t Leader::num_ranks_of(int64_t node_rank) const {
  return node_rank == 0 ? options_.num_ranks()
                        : roster_.num_local_ranks(node_rank);
}

} // namespace tandem::comm::launch
