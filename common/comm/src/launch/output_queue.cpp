#include "output_queue.h"

#include <cerrno>
#include <climits>

#include <unistd.h>

namespace tandem::comm::launch {

namespace {

constexpr std::size_t kFullQueueBytes = 1 << 20;

} // namespace

bool OutputQueue::full() const {
  return text_.size() >= kFullQueueBytes;
}

void OutputQueue::write_some() {
  // A pipe that poll calls writable takes PIPE_BUF bytes without blocking.
  auto size = text_.size();
  if (size > PIPE_BUF) {
    const auto newline = text_.rfind('\n', PIPE_BUF - 1);
    size = newline == std::string::npos ? PIPE_BUF : newline + 1;
  }
  const auto written = ::write(fd_, text_.data(), size);
  if (written >= 0) {
    text_.erase(0, static_cast<std::size_t>(written));
  } else if (errno != EAGAIN && errno != EINTR) {
    text_.clear();
  }
}

} // namespace tandem::comm::launch
