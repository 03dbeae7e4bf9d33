#include "follower.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tandem/core/errors.h>

#include "node_messages.h"
#include "sockets.h"
#include "text.h"

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr auto kConnectLimit = std::chrono::milliseconds(500);
constexpr auto kConnectPause = std::chrono::milliseconds(200);
// A wait of less is nothing to speak of.
constexpr auto kQuietWait = std::chrono::seconds(5);

} // namespace

Follower::Follower(const LaunchOptions& options)
    : options_(options), begin_(Clock::now()), next_try_(begin_) {}

void Follower::add_fds(std::vector<int>& fds) const {
  if (channel_) {
    fds.push_back(channel_->fd());
  }
}

void Follower::step() {
  const auto now = Clock::now();
  if (!channel_) {
    if (!has_started_ && !finish_ && now >= next_try_) {
      try_to_connect(now);
    }
    if (!has_started_ && !channel_ && now - begin_ > options_.meet_timeout()) {
      give_up_meeting();
    }
    return;
  }
  try {
    for (const auto& message : channel_->exchange(now)) {
      take_message(message);
    }
  } catch (const Json::exception& error) {
    lose(error.what());
  }
  if (channel_ && !channel_->why_lost().empty()) {
    lose(channel_->why_lost());
  }
}

std::optional<Start> Follower::take_start() {
  return std::exchange(start_, std::nullopt);
}

std::optional<Finish> Follower::take_finish() {
  return running_ ? std::nullopt : std::exchange(finish_, std::nullopt);
}

std::optional<std::string> Follower::take_note() {
  if (has_started_ || told_waiting_ || Clock::now() - begin_ < kQuietWait) {
    return std::nullopt;
  }
  told_waiting_ = true;
  return channel_
      ? "waits for other nodes"
      : fmt::format("waits for {} ({})", leader_text(), why_not_connected_);
}

void Follower::tell_failure() {
  send({{"type", "failure"}});
}

void Follower::tell_interrupt(int signal) {
  if (interrupted_by_ != 0) {
    return; // node 0 has told it
  }
  interrupted_by_ = signal;
  send({{"type", "interrupt"}, {"signal", signal}});
  if (!channel_ && !running_) {
    finish_ = interrupted_before_start(signal);
  }
}

void Follower::tell_end(const AttemptEnd& end) {
  running_ = false;
  last_end_ = end;
  send(to_message(end));
  if (!channel_) {
    lose(node_failure_);
  }
}

void Follower::tell_error(const std::string& why) {
  send({{"type", "gone"}, {"why", why}});
}

void Follower::try_to_connect(Time now) {
  next_try_ = now + kConnectPause;
  auto socket = connect_to(
      options_.master_addr(),
      options_.master_port(),
      kConnectLimit,
      why_not_connected_);
  if (socket) {
    channel_ = std::make_unique<MessageChannel>(
        std::move(socket),
        options_.node_timeout());
    channel_->trust();
    send(to_message(hello_of(options_)));
  }
}

void Follower::give_up_meeting() {
  AttemptEnd end;
  end.node_failure = fmt::format(
      "{}: expected it within {}, got: {}. Start it, and check that its "
      "address and port can be reached from here",
      leader_text(),
      format_limit(options_.meet_timeout()),
      why_not_connected_);
  finish_ = Finish{Restarts(0).after(end).value(), {}};
}

void Follower::take_message(const Json& message) {
  const auto type = message.at("type").get<std::string>();
  if (type == "start") {
    stopping_ = false;
    start_ = read_start(message);
    has_started_ = true;
    running_ = true;
  } else if (type == "stop") {
    stopping_ = true;
  } else if (type == "interrupt") {
    interrupted_by_ = message.at("signal").get<int>();
  } else if (type == "finish") {
    finish_ = read_finish(message);
    has_started_ = true; // nothing more is to be heard
    channel_.reset();
  } else if (type == "gone") {
    lose("its launcher failed: " + message.at("why").get<std::string>());
  } else if (type == "refused") {
    throw ConfigError(fmt::format(
        "[launch] node {}: refused by {}: {}",
        options_.node_rank(),
        leader_text(),
        message.at("why").get<std::string>()));
  }
}

void Follower::send(const Json& message) {
  if (channel_) {
    channel_->send(message);
  }
}

void Follower::lose(std::string why) {
  channel_.reset();
  if (!has_started_) {
    why_not_connected_ = std::move(why); // it may come again
    if (interrupted_by_ != 0) {
      finish_ = interrupted_before_start(interrupted_by_);
    }
    return;
  }
  if (finish_) {
    return;
  }
  if (node_failure_.empty()) {
    node_failure_ = fmt::format("{}: {}", leader_text(), why);
  }
  stopping_ = true;
  if (!running_) {
    auto end = last_end_.value_or(AttemptEnd());
    end.node_failure = node_failure_;
    finish_ = Finish{Restarts(0).after(end).value(), end.failures};
  }
}

std::string Follower::leader_text() const {
  return fmt::format(
      "node 0 at {} port {}",
      options_.master_addr(),
      options_.master_port());
}

} // namespace tandem::comm::launch
