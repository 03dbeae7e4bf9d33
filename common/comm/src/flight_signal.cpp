#include "flight_signal.h"

#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace tandem::comm {

namespace {

// What the handler reads is set before it is installed, and stays.
int signal_descriptor = -1;
struct sigaction previous_action {};
bool is_installed = false;

void call_previous(int signal, siginfo_t* info, void* context) {
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (
      previous_action.sa_handler != SIG_DFL &&
      previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  }
}

void on_flight_signal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const uint64_t one = 1;
  // It can fail only where the reader is far behind.
  [[maybe_unused]] const auto written =
      ::write(signal_descriptor, &one, sizeof one);
  call_previous(signal, info, context);
  errno = saved_errno;
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 &&
      action.sa_sigaction == on_flight_signal;
}

} // namespace

FlightSignal::FlightSignal() {
  descriptor();
  if (is_installed) {
    return; // below a handler that was put over it
  }
  struct sigaction own {};
  own.sa_sigaction = on_flight_signal;
  own.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&own.sa_mask);
  ::sigaction(SIGUSR1, nullptr, &previous_action);
  ::sigaction(SIGUSR1, &own, nullptr);
  is_installed = true;
}

FlightSignal::~FlightSignal() {
  struct sigaction current {};
  ::sigaction(SIGUSR1, nullptr, &current);
  if (is_ours(current)) {
    ::sigaction(SIGUSR1, &previous_action, nullptr);
    is_installed = false;
  }
}

int FlightSignal::descriptor() {
  static const int made = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  signal_descriptor = made;
  return made;
}

} // namespace tandem::comm
