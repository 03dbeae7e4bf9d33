#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "agent_store.h"
#include "coordination.h"
#include "node_roster.h"

namespace tandem::comm::launch {

/// Node 0's side, also of a single host: serves the ranks' store, anew for each
/// attempt, and decides for all.
class Leader : public Coordination {
 public:
  /// `options` outlives this object.
  /// **Throws** `ConfigError` if other nodes could not reach it.
  explicit Leader(const LaunchOptions& options);

  void add_fds(std::vector<int>& fds) const override;
  void step() override;
  /// **Throws** `Error` if no store can be opened.
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
  using Time = NodeRoster::Time;
  enum class Phase { kMeeting, kStarting, kRunning, kLeaving };

  void take_news(const NodeRoster::News& news);
  void take_message(int64_t node_rank, const nlohmann::json& message);
  void meet(Time now);
  void lose(int64_t node_rank, const std::string& why);
  void stop_all();
  /// The ranks of `node_rank` have ended; those of all, perhaps.
  void note_end(int64_t node_rank, AttemptEnd end);
  void conclude();
  void leave(Finish finish);
  int64_t num_ranks_of(int64_t node_rank) const;

  const LaunchOptions& options_;
  std::string run_id_;
  NodeRoster roster_;
  Restarts restarts_;
  std::unique_ptr<AgentStore> store_;
  Phase phase_ = Phase::kMeeting;
  Time begin_;
  bool told_waiting_ = false;
  bool stopping_ = false;
  int interrupted_by_ = 0;
  std::string node_failure_;
  std::vector<std::optional<AttemptEnd>> ends_; // by node
  std::vector<RankFailure> failures_; // of the last attempt
  std::optional<Finish> finish_;
  Time leave_until_;
};

} // namespace tandem::comm::launch
