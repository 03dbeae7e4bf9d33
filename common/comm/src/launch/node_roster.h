#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <tandem/comm/launcher.h>

#include "file_descriptor.h"
#include "message_channel.h"
#include "node_messages.h"

namespace tandem::comm::launch {

/// The other launchers, as node 0 sees them: who has come, and what they say.
/// Whoever says no proper hello is turned away.
class NodeRoster {
 public:
  using Time = MessageChannel::Time;

  /// Listens, if there are other nodes. `options` outlives this object.
  /// **Throws** `ConfigError` if the master address is not this host's, or its
  /// port is taken.
  explicit NodeRoster(const LaunchOptions& options);
  ~NodeRoster();
  NodeRoster(const NodeRoster&) = delete;
  NodeRoster& operator=(const NodeRoster&) = delete;

  void add_fds(std::vector<int>& fds) const;
  /// Where it listens, in digits. There are other nodes.
  std::string address() const;

  /// Messages that came from one node, and why there will be no more from it
  /// (empty: there may be). A lost node's place is free.
  struct News {
    int64_t node_rank = 0;
    std::vector<nlohmann::json> messages;
    std::string why_lost;
  };
  std::vector<News> exchange(Time now);

  /// Those that are not here, ascending.
  std::vector<int64_t> missing() const;
  /// Nobody is let in any more, and messages may be long.
  void close() {
    closed_ = true;
  }
  /// Of a node that is here.
  int64_t num_local_ranks(int64_t node_rank) const;
  /// To one that is here; nothing happens otherwise.
  void send(int64_t node_rank, const nlohmann::json& message);
  void send_all(const nlohmann::json& message);
  /// Turns one away.
  void drop(int64_t node_rank);

 private:
  struct Node {
    std::unique_ptr<MessageChannel> channel; // none: not here
    Hello hello;
  };
  struct Stranger {
    std::unique_ptr<MessageChannel> channel;
    Time since;
  };

  void accept_strangers(Time now);
  void greet_strangers(Time now);
  /// Lets it in, or says why not.
  void greet(Stranger& stranger, const nlohmann::json& message);
  std::string why_refused(const Hello& hello) const;

  const LaunchOptions& options_;
  FileDescriptor listener_;
  std::deque<Stranger> strangers_;
  std::vector<Node> nodes_; // by rank; this one's is empty
  bool closed_ = false;
};

} // namespace tandem::comm::launch
