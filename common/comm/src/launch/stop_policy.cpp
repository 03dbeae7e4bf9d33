#include "stop_policy.h"

#include <csignal>
#include <utility>

namespace tandem::comm::launch {

void StopPolicy::on_interrupt(int signal) {
  pending_ = interrupted_by_ == 0 ? signal : SIGKILL;
  if (interrupted_by_ == 0) {
    interrupted_by_ = signal;
  }
}

void StopPolicy::on_end(Time now) {
  if (deadline_) {
    return;
  }
  deadline_ = now + grace_;
  if (interrupted_by_ == 0) {
    pending_ = SIGTERM;
  }
}

std::optional<int> StopPolicy::due(Time now) {
  if (deadline_ && now >= *deadline_ && !killed_at_) {
    pending_ = SIGKILL;
  }
  if (pending_ == SIGKILL && !killed_at_) {
    killed_at_ = now;
  }
  return std::exchange(pending_, std::nullopt);
}

} // namespace tandem::comm::launch
