#include "harness/bench_worker.h"

#include <chrono>

#include <c10/core/impl/VirtualGuardImpl.h>

#include <tandem/sim/statistics.h>

#include "harness/comm_hook_choice.h"
#include "harness/flop_counter.h"
#include "harness/gradient_error.h"
#include "harness/timed_activity.h"
#include "harness/verification.h"
#include "harness/worker_channel.h"
#include "placement/peak_memory.h"

namespace tandem::bench {

namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

/// Returns when what was started on the worker's devices is done.
void synchronize(const WorkerScope& worker) {
  if (worker.device().is_cpu()) {
    return;
  }
  const c10::impl::VirtualGuardImpl guard(worker.device().type());
  for (const auto& device : worker.devices()) {
    guard.synchronizeDevice(device.index());
  }
}

/// Bytes that went from the first of several simulated devices to the others;
/// -1 if there are none.
int64_t bytes_from_first_device(const WorkerScope& worker) {
  const auto devices = worker.devices();
  if (devices.size() < 2 || !devices.front().is_privateuseone()) {
    return -1;
  }
  int64_t bytes = 0;
  for (size_t index = 1; index < devices.size(); ++index) {
    bytes += sim::copy_counters(devices.front(), devices[index]).bytes;
  }
  return bytes;
}

/// Runs the steps of a mode and counts them.
class StepRunner {
 public:
  StepRunner(const WorkerScope& worker, TimedActivity& activity)
      : worker_(worker), activity_(activity) {}

  TurnReport run(const TurnOrder& order) {
    for (int64_t step = 0; step < order.untimed_steps; ++step) {
      run_step();
    }
    TurnReport report;
    const int64_t bytes_before = bytes_from_first_device(worker_);
    const auto traffic_before = activity_.hook_traffic();
    for (int64_t step = 0; step < order.timed_steps; ++step) {
      const auto begin = std::chrono::steady_clock::now();
      run_step();
      report.step_ms.push_back(
          Milliseconds(std::chrono::steady_clock::now() - begin).count());
    }
    if (bytes_before >= 0 && order.timed_steps > 0) {
      report.bytes_from_first_device =
          (bytes_from_first_device(worker_) - bytes_before) / order.timed_steps;
    }
    if (traffic_before && order.timed_steps > 0) {
      const auto traffic = *activity_.hook_traffic();
      report.gradient_bytes =
          (traffic.bytes_uncompressed - traffic_before->bytes_uncompressed) /
          order.timed_steps;
      report.hook_bytes =
          (traffic.bytes_sent - traffic_before->bytes_sent) / order.timed_steps;
    }
    report.peak_bytes = peak_bytes(worker_);
    report.steps_run = num_steps_;
    report.counters = activity_.counters();
    if (const auto times = activity_.communication()) {
      report.communication_ms = times->all;
      report.hidden_ms = times->hidden;
    }
    return report;
  }

 private:
  void run_step() {
    activity_.run(num_steps_++);
    synchronize(worker_);
  }

  const WorkerScope& worker_;
  TimedActivity& activity_;
  int64_t num_steps_ = 0;
};

} // namespace

void work_for_coordinator(
    const Placement& placement,
    const Mode& mode,
    const BenchRecipe& recipe,
    int64_t mode_index,
    int64_t port) {
  const WorkerScope worker(placement);
  WorkerChannel channel(port, mode_index, worker.rank());
  ReadyReport ready;
  if (is_exact(mode.hook)) {
    ready.verification = verify_mode(worker, mode, recipe);
  } else {
    const auto error = measure_gradient_error(worker, mode, recipe);
    ready.step_gradient_error = error.of_step;
    ready.summed_gradient_error = error.of_sum;
  }
  const auto activity = make_timed_activity(worker, mode, recipe, at::kFloat);
  StepRunner runner(worker, *activity);
  ready.rows = own_rows(worker, recipe.batch).count;
  ready.flops =
      count_flops([&] { runner.run({.untimed_steps = 1, .timed_steps = 0}); });
  reset_peak_bytes(worker); // the steps' from here on, not the construction's
  ready.device = at::Device(worker.device().type()).str();
  ready.backend = worker.backend().value_or("");
  channel.report_ready(ready);
  for (auto order = channel.next_order();
       order.untimed_steps + order.timed_steps > 0;
       order = channel.next_order()) {
    channel.report_turn(runner.run(order));
  }
}

} // namespace tandem::bench
