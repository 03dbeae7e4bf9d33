#include "failure_report.h"

#include <csignal>
#include <cstring>

#include <fmt/format.h>

namespace tandem::comm::launch {

namespace {

std::string how_it_ended(const ExitStatus& status) {
  if (status.signal != 0) {
    return "was killed by " + signal_name(status.signal);
  }
  const int shell_signal = status.code - 128;
  const bool names_signal =
      shell_signal > 0 && ::sigabbrev_np(shell_signal) != nullptr;
  return fmt::format(
      "exited with code {}{}",
      status.code,
      names_signal ? fmt::format(" (128 + {})", signal_name(shell_signal))
                   : "");
}

} // namespace

std::string signal_name(int signal) {
  const char* const abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? fmt::format("signal {}", signal)
                                 : fmt::format("SIG{}", abbreviation);
}

std::string report(const LaunchResult& result, const std::string& name) {
  std::string text;
  if (result.interrupted_by != 0) {
    text += fmt::format(
        "[{}] interrupted by {}\n",
        name,
        signal_name(result.interrupted_by));
  }
  if (!result.first_failure) {
    return text;
  }
  const auto& failure = *result.first_failure;
  const bool obeyed = result.interrupted_by != 0 &&
      failure.status.signal == result.interrupted_by;
  if (obeyed) {
    return text;
  }
  text += fmt::format(
      "[{}] rank {} (pid {}) {}{}\n",
      name,
      failure.rank,
      failure.pid,
      how_it_ended(failure.status),
      failure.last_lines.empty() ? ", without output" : "; its last lines:");
  for (const auto& line : failure.last_lines) {
    text += fmt::format("[{}] | {}\n", name, line);
  }
  return text;
}

} // namespace tandem::comm::launch
