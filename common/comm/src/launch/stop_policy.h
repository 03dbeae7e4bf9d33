#pragma once

#include <chrono>
#include <optional>

namespace tandem::comm::launch {

/// Decides which signal the ranks get and when, from the events that it is told
/// and their times.
class StopPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit StopPolicy(std::chrono::milliseconds grace) : grace_(grace) {}

  /// The launcher got SIGINT or SIGTERM: forwarded, the second one SIGKILL.
  void on_interrupt(int signal);
  /// A rank failed, or the last one ended and left processes behind: SIGTERM,
  /// unless a signal is on its way, and after the grace SIGKILL.
  void on_end(Time now);

  /// The signal to send to all groups now; each is returned once.
  std::optional<int> due(Time now);
  /// The ranks have been told to end, or will be by `due`.
  bool ending() const {
    return deadline_.has_value();
  }
  /// When SIGKILL was due; nothing before.
  std::optional<Time> killed_at() const {
    return killed_at_;
  }
  /// The first signal that was forwarded; 0 if there was none.
  int interrupted_by() const {
    return interrupted_by_;
  }

 private:
  std::chrono::milliseconds grace_;
  std::optional<int> pending_;
  std::optional<Time> deadline_;
  std::optional<Time> killed_at_;
  int interrupted_by_ = 0;
};

} // namespace tandem::comm::launch
