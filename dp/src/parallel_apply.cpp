#include "parallel_apply.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/thread_state.h>

namespace tandem::detail {

namespace {

[[noreturn]] void rethrow(const std::vector<ReplicaFailure>& failures) {
  const auto& first = failures.front();
  try {
    std::rethrow_exception(first.exception);
  } catch (c10::Error& error) {
    if (failures.size() == 1) {
      error.add_context(fmt::format(
          "[dp replica {} on {}] forward failed",
          first.replica,
          first.device.str()));
      throw;
    }
    throw ReplicaError(failures);
  } catch (...) {
    throw ReplicaError(failures);
  }
}

/// Whether a replica only stopped because another one failed.
bool is_consequence(const ReplicaFailure& failure) {
  try {
    std::rethrow_exception(failure.exception);
  } catch (const MeetingBroken&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// The failures to report: causes, and consequences only if there is no cause.
std::vector<ReplicaFailure> failures_of(
    const std::vector<std::exception_ptr>& exceptions,
    const std::vector<at::Device>& devices) {
  std::vector<ReplicaFailure> failures;
  for (size_t replica = 0; replica < exceptions.size(); ++replica) {
    if (exceptions[replica]) {
      failures.push_back(
          {static_cast<int64_t>(replica),
           devices[replica],
           exceptions[replica]});
    }
  }
  if (!std::all_of(failures.begin(), failures.end(), is_consequence)) {
    std::erase_if(failures, is_consequence);
  }
  return failures;
}

void set_intra_op_threads(int num_threads) {
  if (at::get_num_threads() != num_threads) {
    at::set_num_threads(num_threads);
  }
}

} // namespace

void parallel_apply(
    ForwardCall& call,
    size_t num_chunks,
    const std::vector<std::shared_ptr<torch::nn::Module>>& replicas,
    const std::vector<at::Device>& devices,
    const LayerNames& layers,
    const std::vector<std::unique_ptr<WorkerThread>>& workers) {
  const ThreadState state(devices);
  std::optional<StatisticsMeeting> meeting;
  if (num_chunks > 1 && !layers.empty()) {
    meeting.emplace(
        layers,
        std::vector(devices.begin(), devices.begin() + num_chunks));
  }
  const int num_threads = at::get_num_threads();
  std::vector<std::exception_ptr> exceptions(num_chunks);
  const auto run_replica = [&](size_t replica) {
    try {
      const ThreadStateGuard guard(state, replica);
      set_intra_op_threads(num_threads);
      if (meeting) {
        const StatisticsScope scope(&meeting->seat(replica));
        call.invoke_chunk(*replicas[replica], replica);
        meeting->finish(replica);
      } else {
        call.invoke_chunk(*replicas[replica], replica);
      }
    } catch (...) {
      exceptions[replica] = std::current_exception();
      if (meeting) {
        meeting->fail();
      }
    }
  };
  std::vector<std::function<void()>> jobs;
  for (size_t replica = 1; replica < num_chunks; ++replica) {
    jobs.emplace_back([&run_replica, replica] { run_replica(replica); });
  }
  for (size_t job = 0; job < jobs.size(); ++job) {
    workers[job]->start(jobs[job]);
  }
  run_replica(0);
  for (size_t job = 0; job < jobs.size(); ++job) {
    workers[job]->wait();
  }
  const auto failures = failures_of(exceptions, devices);
  if (!failures.empty()) {
    rethrow(failures);
  }
}

} // namespace tandem::detail
