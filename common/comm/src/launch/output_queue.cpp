#include "output_queue.h"

#include <cerrno>
#include <climits>

#include <unistd.h>

namespace tandem::comm::launch {

namespace {

constexpr std::size_t kFullQueueBytes = 1 << 20;

} // namespace

bool OutputQueue::full() const {
  return num_unsent() >= kFullQueueBytes;
}

void OutputQueue::write_some() {
  // A pipe that poll calls writable takes PIPE_BUF bytes without blocking.
  auto size = num_unsent();
  if (size > PIPE_BUF) {
    const auto newline = text_.rfind('\n', sent_ + PIPE_BUF - 1);
    const bool fits = newline != std::string::npos && newline >= sent_;
    size = fits ? newline + 1 - sent_ : PIPE_BUF;
  }
  const auto written = ::write(fd_, text_.data() + sent_, size);
  if (written >= 0) {
    sent_ += static_cast<std::size_t>(written);
  } else if (errno != EAGAIN && errno != EINTR) {
    sent_ = text_.size();
  }
  if (empty() || sent_ >= kFullQueueBytes) {
    text_.erase(0, sent_);
    sent_ = 0;
  }
}

} // namespace tandem::comm::launch
