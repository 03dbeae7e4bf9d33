#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent_store.h"
#include "coordination.h"

namespace tandem::comm::launch {

/// Serves the ranks' store, anew for each attempt, and decides.
class Leader : public Coordination {
 public:
  /// `options` outlives this object. Opens nothing.
  explicit Leader(const LaunchOptions& options);

  /// **Throws** `Error` if no store can be opened.
  std::optional<Start> take_start() override;
  std::optional<Finish> take_finish() override;
  void tell_end(const AttemptEnd& end) override;

 private:
  const LaunchOptions& options_;
  std::string run_id_;
  Restarts restarts_;
  std::unique_ptr<AgentStore> store_;
  bool start_due_ = true;
  std::vector<RankFailure> failures_;
  std::optional<Finish> finish_;
};

} // namespace tandem::comm::launch
