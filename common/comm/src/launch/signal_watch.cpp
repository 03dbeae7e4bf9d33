#include "signal_watch.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace tandem::comm::launch {

SignalWatch::SignalWatch() {
  sigset_t watched{};
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD}) {
    sigaddset(&watched, signal);
  }
  fd_ = FileDescriptor(checked(
      ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK),
      "signalfd"));
  struct sigaction by_default {};
  by_default.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &by_default, &previous_child_action_);
  ::pthread_sigmask(SIG_BLOCK, &watched, &previous_mask_);
}

SignalWatch::~SignalWatch() {
  ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  ::sigaction(SIGCHLD, &previous_child_action_, nullptr);
}

std::vector<int> SignalWatch::take() {
  std::vector<int> signals;
  signalfd_siginfo info{};
  while (::read(fd_.get(), &info, sizeof info) == sizeof info) {
    signals.push_back(static_cast<int>(info.ssi_signo));
  }
  return signals;
}

} // namespace tandem::comm::launch
