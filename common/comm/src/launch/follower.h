#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "coordination.h"
#include "message_channel.h"

namespace tandem::comm::launch {

/// The side of all nodes but 0: does what node 0 says, and ends when that is
/// lost.
class Follower : public Coordination {
 public:
  /// `options` outlives this object. Connects later.
  explicit Follower(const LaunchOptions& options);

  void add_fds(std::vector<int>& fds) const override;
  void step() override;
  std::optional<Start> take_start() override;
  bool stop_asked() const override {
    return stopping_;
  }
  int interrupt_asked() const override {
    return interrupted_by_;
  }
  std::optional<Finish> take_finish() override;
  std::optional<std::string> take_note() override;
  void tell_failure() override;
  void tell_interrupt(int signal) override;
  void tell_end(const AttemptEnd& end) override;
  void tell_error(const std::string& why) override;

 private:
  using Time = MessageChannel::Time;

  void try_to_connect(Time now);
  void give_up_meeting();
  void take_message(const nlohmann::json& message);
  void send(const nlohmann::json& message);
  /// Node 0 is no more to be heard.
  void lose(std::string why);
  std::string leader_text() const;

  const LaunchOptions& options_;
  std::unique_ptr<MessageChannel> channel_;
  Time begin_;
  Time next_try_;
  std::string why_not_connected_;
  bool told_waiting_ = false;
  bool has_started_ = false; // once at least
  bool running_ = false; // or about to start
  bool stopping_ = false;
  int interrupted_by_ = 0;
  std::string node_failure_;
  std::optional<AttemptEnd> last_end_;
  std::optional<Start> start_;
  std::optional<Finish> finish_;
};

} // namespace tandem::comm::launch
