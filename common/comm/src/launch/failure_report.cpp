#include "failure_report.h"

#include <csignal>
#include <cstddef>
#include <cstring>
#include <sstream>

#include <fmt/format.h>

namespace tandem::comm::launch {

namespace {

// Failures beside the cause that are told, of up to hundreds.
constexpr std::size_t kMaxOthers = 8;

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

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// "rank 1 (pid 23) exited with code 1"; with the node if there are several.
std::string what_happened(
    const RankFailure& failure,
    const LaunchOptions& options) {
  return fmt::format(
      "rank {} ({}pid {}) {}",
      failure.rank,
      options.num_nodes() > 1 ? fmt::format("node {}, ", failure.node_rank)
                              : "",
      failure.pid,
      how_it_ended(failure.status));
}

// With the first line of its error.
std::string one_line(const RankFailure& failure, const LaunchOptions& options) {
  const auto lines = lines_of(failure.error);
  return what_happened(failure, options) +
      (lines.empty() ? "" : ": " + lines.front());
}

std::string quoted(
    const std::vector<std::string>& lines,
    const std::string& name) {
  std::string text;
  for (const auto& line : lines) {
    text += fmt::format("[{}] | {}\n", name, line);
  }
  return text;
}

std::string cause_lines(
    const RankFailure& cause,
    const LaunchOptions& options) {
  const auto& name = options.name();
  auto text = fmt::format("[{}] {}", name, what_happened(cause, options));
  if (cause.error.empty() && cause.last_lines.empty()) {
    return text + ", without output\n";
  }
  if (!cause.error.empty()) {
    text += "; its error:\n" + quoted(lines_of(cause.error), name);
  }
  if (!cause.last_lines.empty()) {
    text += cause.error.empty() ? "; its last lines:\n"
                                : fmt::format("[{}] its last lines:\n", name);
  }
  return text + quoted(cause.last_lines, name);
}

} // namespace

std::string signal_name(int signal) {
  const char* const abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? fmt::format("signal {}", signal)
                                 : fmt::format("SIG{}", abbreviation);
}

std::string describe(
    const std::vector<RankFailure>& failures,
    const LaunchOptions& options) {
  const auto& name = options.name();
  if (failures.empty()) {
    return "";
  }
  std::string text;
  for (std::size_t i = 1; i < failures.size() && i <= kMaxOthers; ++i) {
    text += fmt::format(
        "[{}] also failed: {}\n",
        name,
        one_line(failures[i], options));
  }
  if (failures.size() > kMaxOthers + 1) {
    text += fmt::format(
        "[{}] and {} more\n",
        name,
        failures.size() - kMaxOthers - 1);
  }
  if (failures.size() > 1) {
    text += fmt::format("[{}] the first failure:\n", name);
  }
  return text + cause_lines(failures.front(), options);
}

std::string report(const Finish& finish, const LaunchOptions& options) {
  const auto& name = options.name();
  const auto& result = finish.result;
  std::string text;
  if (result.interrupted_by != 0) {
    text += fmt::format(
        "[{}] interrupted by {}\n",
        name,
        signal_name(result.interrupted_by));
  }
  const bool obeyed = result.interrupted_by != 0 && result.first_failure &&
      result.first_failure->status.signal == result.interrupted_by;
  if (!obeyed) {
    text += describe(finish.failures, options);
  }
  if (!result.node_failure.empty()) {
    text += fmt::format("[{}] {}\n", name, result.node_failure);
  }
  const auto num_failed = result.causes.size();
  if (num_failed == 0 || options.max_restarts() == 0) {
    return text;
  }
  if (!result.first_failure) {
    return text +
        fmt::format("[{}] succeeded at restart {}\n", name, num_failed);
  }
  text += fmt::format(
      "[{}] gave up after {} of {} restarts; what ended each attempt, the "
      "first "
      "cause first:\n",
      name,
      num_failed - 1,
      options.max_restarts());
  for (const auto& cause : result.causes) {
    text += fmt::format("[{}] | {}\n", name, one_line(cause, options));
  }
  return text;
}

} // namespace tandem::comm::launch
