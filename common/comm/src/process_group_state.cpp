#include "process_group_state.h"

#include <exception>
#include <thread>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "text.h"

namespace tandem::comm {

namespace {

// How often a rank that waits for a device asks whether a peer has failed.
constexpr std::chrono::milliseconds kAlarmInterval{250};
// Completion is polled without a pause for so long.
constexpr std::chrono::milliseconds kSpin{2};
constexpr std::chrono::microseconds kPause{100};

bool is_timeout(const std::string& message) {
  return message.find("imed out") != std::string::npos ||
      message.find("timeout") != std::string::npos;
}

} // namespace

std::string ProcessGroup::State::tag() const {
  return rank_tag("comm", rank, size);
}

c10::intrusive_ptr<c10d::Backend> ProcessGroup::State::backend(
    at::DeviceType type) const {
  for (const auto& served : group->getDeviceTypes()) {
    if (served.type() == type) {
      return group->getBackend(type);
    }
  }
  throw ShapeError(fmt::format(
      "{} tensor: expected one on a device that the group serves, got {}. "
      "Choose the device in ProcessGroupOptions",
      tag(),
      c10::DeviceTypeName(type, true)));
}

void ProcessGroup::State::abort_backend(at::DeviceType type) {
  group->getBackend(type)->abort();
}

void ProcessGroup::State::abort() noexcept {
  try {
    for (const auto& served : group->getDeviceTypes()) {
      abort_backend(served.type());
    }
  } catch (const std::exception& error) {
    TORCH_WARN(tag(), " abort failed: ", first_line(error.what()));
  }
}

void ProcessGroup::State::close() noexcept {
  if (!failure.empty()) {
    return; // `fail` has aborted everything
  }
  try {
    if (in_flight.any()) {
      abort();
    } else if (device.is_cuda()) {
      // NCCL's own destructor would do the same, but with a warning.
      abort_backend(at::kCUDA);
    }
  } catch (const std::exception& error) {
    TORCH_WARN(tag(), " close failed: ", first_line(error.what()));
  }
}

void ProcessGroup::State::check_usable(const std::string& what) const {
  if (!failure.empty()) {
    throw PeerError(fmt::format(
        "{} {}: expected a working group, got one that has failed: {}",
        tag(),
        what,
        failure));
  }
}

ProcessGroup::State::WorkPtr ProcessGroup::State::start(
    const std::string& what,
    at::DeviceType type,
    const std::function<WorkPtr(c10d::Backend&)>& start_on) {
  check_usable(what);
  const auto served_by = backend(type);
  WorkPtr work;
  try {
    work = start_on(*served_by);
  } catch (...) {
    fail(what, message_of(std::current_exception()));
  }
  if (work) {
    in_flight.add(work);
  }
  return work;
}

void ProcessGroup::State::await_completion(
    c10d::Work& work,
    const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  auto next_look = begin + kAlarmInterval;
  while (!work.isCompleted()) {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin > timeout) {
      fail(what, "timed out after " + format_limit(timeout));
    }
    if (now > next_look) {
      if (size > 1 && RollCall(*store, rank, size).began()) {
        fail(what, "another rank reported a failure");
      }
      next_look = now + kAlarmInterval;
    }
    if (now - begin < kSpin) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kPause);
    }
  }
  if (const auto error = work.exception()) {
    fail(what, message_of(error));
  }
}

void ProcessGroup::State::fail(
    const std::string& what,
    const std::string& cause) {
  check_usable(what);
  RollCallResult result;
  if (size > 1) {
    RollCall roll_call(*store, rank, size);
    roll_call.answer(is_timeout(cause));
    abort();
    result = roll_call.take();
  }
  failure = describe_failure(what, first_sentence(cause), result);
  if (result.timed_out || is_timeout(cause)) {
    throw TimeoutError(failure);
  }
  throw PeerError(failure);
}

std::string ProcessGroup::State::describe_failure(
    const std::string& what,
    const std::string& cause,
    const RollCallResult& roll_call) const {
  const auto begin = fmt::format(
      "{} {}: expected all ranks to take part within {}, got ",
      tag(),
      what,
      format_limit(timeout));
  if (roll_call.store_lost) {
    return fmt::format(
        "{}no answer from the store, which rank 0 or the launcher hosts ({}). "
        "See what rank 0 printed last",
        begin,
        cause);
  }
  if (roll_call.missing.empty() && roll_call.timed_out && !is_timeout(cause)) {
    return fmt::format("{}here after others had given up ({})", begin, cause);
  }
  if (roll_call.missing.empty()) {
    return fmt::format("{}a failure that every rank reports: {}", begin, cause);
  }
  const auto missing = list_ranks(roll_call.missing);
  return fmt::format(
      "{}no answer from {} ({}). See what {} printed last; raise the timeout "
      "if it was only slow",
      begin,
      missing,
      cause,
      missing);
}

} // namespace tandem::comm
