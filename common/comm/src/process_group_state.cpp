#include "process_group_state.h"

#include <exception>
#include <thread>

#include <fmt/format.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "collective_check.h"
#include "text.h"

namespace tandem::comm {

namespace {

// How often a rank that waits for a device asks whether a peer has failed.
constexpr std::chrono::milliseconds kAlarmInterval{250};
// Completion is polled without a pause for so long.
constexpr std::chrono::milliseconds kSpin{2};
constexpr std::chrono::microseconds kPause{100};

// For a work that has no limit of its own.
constexpr std::chrono::milliseconds kTimeoutSlack{100};

/// As `work.wait()`, but false if `work` goes on after `limit`.
bool ends_within(c10d::Work& work, std::chrono::milliseconds limit) {
  try {
    work.wait(limit);
  } catch (...) {
    if (const auto error = work.exception()) {
      std::rethrow_exception(error);
    }
    return false;
  }
  return true;
}

bool is_timeout(const std::string& message) {
  return message.find("imed out") != std::string::npos ||
      message.find("timeout") != std::string::npos;
}

} // namespace

void ProcessGroup::State::open_diagnostics() {
  stalls = StallWatch(
      size > 1 ? diagnostics.stall_warning() : std::chrono::milliseconds(0));
  const auto& folder = diagnostics.flight_dir();
  if (folder.empty()) {
    log = std::make_shared<FlightLog>();
    return;
  }
  log = std::make_shared<FlightLog>(folder, store, rank, size);
  monitor = FlightMonitor::shared();
  monitor->add(log);
}

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
    if (log->recorder().any_in_flight()) {
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
    const Collective& collective,
    const std::function<WorkPtr(c10d::Backend&)>& start_on) {
  const std::string what = operation_name(collective.operation);
  check_usable(what);
  const auto served_by = backend(collective.device);
  auto& recorder = log->recorder();
  const auto own_sequence = recorder.begin(collective);
  if (diagnostics.check_collectives() && size > 1) {
    compare(own_sequence, collective);
  }
  WorkPtr work;
  try {
    work = start_on(*served_by);
  } catch (...) {
    fail(what, own_sequence, message_of(std::current_exception()));
  }
  if (work) {
    recorder.launched(own_sequence, work);
  } else {
    recorder.finished(own_sequence);
  }
  return work;
}

void ProcessGroup::State::wait(c10d::Work& work, const std::string& what) {
  const auto own_sequence = log->recorder().awaited(work, what);
  wait(Awaited{work, what, own_sequence});
  // NCCL's `wait` only has a stream wait.
  if (work.isCompleted()) {
    log->recorder().finished(own_sequence);
  }
}

void ProcessGroup::State::confirm(c10d::Work& work, const std::string& what) {
  const Awaited awaited{work, what, log->recorder().awaited(work, what)};
  wait(awaited);
  await_completion(awaited);
  log->recorder().finished(awaited.sequence);
}

void ProcessGroup::State::wait(const Awaited& awaited) {
  try {
    // NCCL's does not block, but would if it had a limit.
    if (stalls.is_on() &&
        log->recorder().device_of(awaited.sequence) != at::kCUDA) {
      wait_watched(awaited);
    } else {
      awaited.work.wait();
    }
  } catch (...) {
    fail(awaited.what, awaited.sequence, message_of(std::current_exception()));
  }
}

void ProcessGroup::State::wait_watched(const Awaited& awaited) {
  const auto begin = std::chrono::steady_clock::now();
  while (stalls.is_on() && !ends_within(awaited.work, stalls.interval())) {
    look_for_stall(awaited, begin);
    TORCH_CHECK(
        std::chrono::steady_clock::now() - begin < timeout + kTimeoutSlack,
        "timed out after ",
        format_limit(timeout));
  }
  awaited.work.wait();
}

void ProcessGroup::State::look_for_stall(
    const Awaited& awaited,
    std::chrono::steady_clock::time_point begin) {
  auto& recorder = log->recorder();
  const auto warning = stalls.look(
      {.store = store,
       .rank = rank,
       .size = size,
       .key = std::to_string(
           awaited.sequence > 0 ? awaited.sequence : recorder.last_sequence()),
       .waited = std::chrono::duration_cast<std::chrono::milliseconds>(
           std::chrono::steady_clock::now() - begin)});
  if (!warning.empty()) {
    TORCH_WARN(
        tag(),
        " ",
        recorder.position(awaited.sequence, awaited.what),
        ": ",
        warning,
        ". It fails after ",
        format_limit(timeout));
  }
}

void ProcessGroup::State::compare(
    int64_t call_sequence,
    const Collective& collective) {
  const std::string what = operation_name(collective.operation);
  ComparisonOutcome outcome;
  try {
    outcome = compare_calls(
        {.store = store,
         .rank = rank,
         .size = size,
         .sequence = call_sequence,
         .call = collective.describe(),
         .limit = timeout});
  } catch (...) {
    outcome.failure = message_of(std::current_exception());
  }
  if (!outcome.failure.empty()) {
    fail(what, call_sequence, outcome.failure);
  }
  if (!outcome.difference.empty()) {
    log->recorder().failed(call_sequence);
    const auto message = fmt::format(
        "{} {}. All ranks must start the same collectives in the same order",
        tag(),
        outcome.difference);
    log->write_failure("mismatch", message, {});
    throw ConfigError(message);
  }
}

void ProcessGroup::State::await_completion(const Awaited& awaited) {
  auto& [work, what, own_sequence] = awaited;
  const auto begin = std::chrono::steady_clock::now();
  auto next_look = begin + kAlarmInterval;
  while (!work.isCompleted()) {
    const auto now = std::chrono::steady_clock::now();
    if (now - begin > timeout) {
      fail(what, own_sequence, "timed out after " + format_limit(timeout));
    }
    if (now > next_look) {
      if (size > 1 && RollCall(store, rank, size).began()) {
        fail(what, own_sequence, "another rank reported a failure");
      }
      if (stalls.is_on()) {
        look_for_stall(awaited, begin);
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
    fail(what, own_sequence, message_of(error));
  }
}

void ProcessGroup::State::fail(
    const std::string& what,
    int64_t failed_sequence,
    const std::string& cause) {
  check_usable(what);
  log->recorder().failed(failed_sequence);
  RollCallResult result;
  if (size > 1) {
    RollCall roll_call(store, rank, size);
    roll_call.answer(
        is_timeout(cause),
        log->recorder().position(failed_sequence, what));
    abort();
    result = roll_call.take();
  }
  failure = describe_failure(what, first_sentence(cause), result) +
      describe_positions(result.positions);
  const bool timed_out = result.timed_out || is_timeout(cause);
  log->write_failure(timed_out ? "timeout" : "error", failure, result.missing);
  if (timed_out) {
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
