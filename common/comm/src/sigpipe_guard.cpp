#include "sigpipe_guard.h"

#include <ctime>

namespace tandem::comm {

namespace {

sigset_t sigpipe_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_sigpipe_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

} // namespace

SigpipeGuard::SigpipeGuard() : was_pending_(is_sigpipe_pending()) {
  const auto set = sigpipe_set();
  pthread_sigmask(SIG_BLOCK, &set, &previous_);
}

SigpipeGuard::~SigpipeGuard() {
  if (!was_pending_ && is_sigpipe_pending()) {
    const auto set = sigpipe_set();
    const timespec now{0, 0};
    sigtimedwait(&set, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

} // namespace tandem::comm
