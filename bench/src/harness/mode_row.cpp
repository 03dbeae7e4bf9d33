#include "harness/mode_row.h"

#include <algorithm>

#include <tandem/core/order_statistics.h>

#include "harness/comm_hook_choice.h"

namespace tandem::bench {

namespace {

bool has_rows(Activity activity) {
  return activity != Activity::kRefresh && activity != Activity::kCopyEach;
}

train::ResultRow empty_row(const Mode& mode, const BenchRecipe& recipe) {
  train::ResultRow row;
  row.workload = architecture_name(recipe.workload);
  row.strategy = timed_strategy_name(mode.strategy);
  if (mode.activity != Activity::kTrain) {
    row.variant = activity_name(mode.activity);
  }
  row.hook = mode.hook;
  row.workers = mode.workers;
  row.threads_per_worker = mode.threads;
  row.batch = recipe.batch;
  return row;
}

} // namespace

std::string mode_name(const Mode& mode, const BenchRecipe& recipe) {
  return empty_row(mode, recipe).name();
}

train::ResultRow make_mode_row(
    const Mode& mode,
    const BenchRecipe& recipe,
    const std::vector<ReadyReport>& reports) {
  auto row = empty_row(mode, recipe);
  ReadyReport largest;
  int64_t flops = 0;
  for (const auto& report : reports) {
    auto& difference = largest.verification.max_abs_diff;
    difference = std::max(difference, report.verification.max_abs_diff);
    largest.step_gradient_error =
        std::max(largest.step_gradient_error, report.step_gradient_error);
    largest.summed_gradient_error =
        std::max(largest.summed_gradient_error, report.summed_gradient_error);
    flops += report.flops;
  }
  if (is_exact(mode.hook)) {
    row.verify_max_abs_diff = largest.verification.max_abs_diff;
  } else {
    row.step_gradient_error = largest.step_gradient_error;
    row.summed_gradient_error = largest.summed_gradient_error;
  }
  if (has_rows(mode.activity)) {
    row.flops_per_step = flops;
  }
  row.device = reports.front().device;
  if (!reports.front().backend.empty()) {
    row.backend = reports.front().backend;
  }
  return row;
}

void add_turn(const std::vector<TurnReport>& reports, train::ResultRow& row) {
  const auto num_workers = static_cast<double>(reports.size());
  const auto& first = reports.front();
  for (size_t step = 0; step < first.step_ms.size(); ++step) {
    double sum_ms = 0;
    for (const auto& report : reports) {
      sum_ms += report.step_ms.at(step);
    }
    row.step_ms.push_back(sum_ms / num_workers);
  }
  row.peak_bytes.clear();
  for (const auto& report : reports) {
    row.peak_bytes.insert(
        row.peak_bytes.end(),
        report.peak_bytes.begin(),
        report.peak_bytes.end());
  }
  if (first.bytes_from_first_device >= 0) {
    row.bytes_from_first_device = first.bytes_from_first_device;
  }
  row.steps_run = first.steps_run;
  if (first.communication_ms > 0) {
    row.communication_ms = first.communication_ms;
    row.hidden_communication_ms = first.hidden_ms;
  }
  if (first.hook_bytes >= 0) {
    row.gradient_bytes = first.gradient_bytes;
    row.hook_bytes = first.hook_bytes;
  }
  if (row.strategy != timed_strategy_name(TimedStrategy::kBare)) {
    row.counters = first.counters;
  }
}

void set_samples_per_s(train::ResultRow& row) {
  if (row.flops_per_step) {
    row.samples_per_s = static_cast<double>(row.batch) /
        (order_statistics(row.step_ms).p50 / 1000);
  }
}

} // namespace tandem::bench
