#include "node_roster.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sockets.h"

namespace tandem::comm::launch {

namespace {

using Json = nlohmann::json;

// A launcher says hello at once.
constexpr auto kHelloLimit = std::chrono::seconds(5);
constexpr std::size_t kMaxStrangers = 64;

std::size_t place(int64_t node_rank) {
  return static_cast<std::size_t>(node_rank);
}

} // namespace

NodeRoster::NodeRoster(const LaunchOptions& options)
    : options_(options), nodes_(place(options.num_nodes())) {
  if (options.num_nodes() > 1) {
    auto port = options.master_port();
    listener_ = listen_at(options.master_addr(), port);
  }
}

NodeRoster::~NodeRoster() = default;

void NodeRoster::add_fds(std::vector<int>& fds) const {
  if (listener_) {
    fds.push_back(listener_.get());
  }
  for (const auto& stranger : strangers_) {
    fds.push_back(stranger.channel->fd());
  }
  for (const auto& node : nodes_) {
    if (node.channel) {
      fds.push_back(node.channel->fd());
    }
  }
}

std::string NodeRoster::address() const {
  return own_address(listener_);
}

std::vector<NodeRoster::News> NodeRoster::exchange(Time now) {
  if (listener_) {
    accept_strangers(now);
  }
  greet_strangers(now);
  std::vector<News> all;
  for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
    auto& channel = nodes_[rank].channel;
    if (!channel) {
      continue;
    }
    News news;
    news.node_rank = static_cast<int64_t>(rank);
    news.messages = channel->exchange(now);
    if (!channel->why_lost().empty()) {
      news.why_lost = fmt::format(
          "node {}: its launcher at {} is lost: {}",
          rank,
          channel->address(),
          channel->why_lost());
      channel.reset();
    }
    all.push_back(std::move(news));
  }
  return all;
}

std::vector<int64_t> NodeRoster::missing() const {
  std::vector<int64_t> ranks;
  for (int64_t rank = 1; rank < options_.num_nodes(); ++rank) {
    if (!nodes_[place(rank)].channel) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

int64_t NodeRoster::num_local_ranks(int64_t node_rank) const {
  return nodes_[place(node_rank)].hello.num_local_ranks;
}

void NodeRoster::send(int64_t node_rank, const Json& message) {
  if (auto& channel = nodes_[place(node_rank)].channel) {
    channel->send(message);
  }
}

void NodeRoster::send_all(const Json& message) {
  for (int64_t rank = 1; rank < options_.num_nodes(); ++rank) {
    send(rank, message);
  }
}

void NodeRoster::drop(int64_t node_rank) {
  nodes_[place(node_rank)].channel.reset();
}

void NodeRoster::accept_strangers(Time now) {
  while (auto socket = accept_from(listener_)) {
    if (strangers_.size() == kMaxStrangers) {
      strangers_.pop_front();
    }
    strangers_.push_back(
        {std::make_unique<MessageChannel>(
             std::move(socket),
             options_.node_timeout()),
         now});
  }
}

void NodeRoster::greet_strangers(Time now) {
  for (auto& stranger : strangers_) {
    const auto messages = stranger.channel->exchange(now);
    if (!messages.empty()) {
      greet(stranger, messages.front());
    }
  }
  std::erase_if(strangers_, [now](const Stranger& stranger) {
    return !stranger.channel || !stranger.channel->why_lost().empty() ||
        now - stranger.since > kHelloLimit;
  });
}

void NodeRoster::greet(Stranger& stranger, const Json& message) {
  auto channel = std::move(stranger.channel);
  try {
    const auto hello = read_hello(message);
    const auto why = why_refused(hello);
    if (!why.empty()) {
      channel->send({{"type", "refused"}, {"why", why}});
      return;
    }
    channel->trust();
    nodes_[place(hello.node_rank)] = {std::move(channel), hello};
  } catch (const Json::exception&) {
    return; // no launcher of ours
  }
}

std::string NodeRoster::why_refused(const Hello& hello) const {
  const auto own = hello_of(options_);
  if (hello.protocol != own.protocol) {
    return fmt::format(
        "expected the protocol '{}' of node 0, got '{}'",
        own.protocol,
        hello.protocol);
  }
  if (hello.num_nodes != own.num_nodes) {
    return fmt::format(
        "expected {} nodes as on node 0, got {}",
        own.num_nodes,
        hello.num_nodes);
  }
  if (hello.max_restarts != own.max_restarts) {
    return fmt::format(
        "expected at most {} restarts as on node 0, got {}",
        own.max_restarts,
        hello.max_restarts);
  }
  if (hello.node_rank < 1 || hello.node_rank >= own.num_nodes) {
    return fmt::format(
        "expected a node rank from 1 to {}, got {}",
        own.num_nodes - 1,
        hello.node_rank);
  }
  if (closed_ || nodes_[place(hello.node_rank)].channel) {
    return fmt::format(
        "expected one launcher of node {}, got another",
        hello.node_rank);
  }
  return "";
}

} // namespace tandem::comm::launch
