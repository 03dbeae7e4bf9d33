#include "commands.h"

#include <iostream>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <tandem/core/errors.h>
#include <tandem/train/results.h>

#include "bench_options.h"
#include "bench_plan.h"
#include "harness/bench_run.h"
#include "harness/bench_worker.h"
#include "operators/operator_costs.h"
#include "peers/python_peer.h"
#include "processes/child_program.h"
#include "program_environment.h"
#include "report/bench_table.h"
#include "report/figures.h"
#include "report/operator_table.h"
#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

constexpr const char* kOperators = "operators";

/// "cpu and sim".
std::string devices_of(const std::vector<train::ResultRow>& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) {
    names.insert(row.device);
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string bench_header(
    const BenchOptions& options,
    const train::Environment& environment,
    const std::vector<train::ResultRow>& rows) {
  auto header = fmt::format(
      "# tandem {}, LibTorch {}, {} cores ({})\n"
      "# {} on {}, {} rows a step over all workers, {} steps of each mode in "
      "turns of {}, {} before to warm up, seed {}\n",
      environment.tandem,
      environment.torch,
      environment.cores,
      environment.cpu,
      options.workload,
      devices_of(rows),
      options.batch,
      options.turns.steps,
      options.turns.steps_per_turn,
      options.turns.warm_up_steps,
      options.seed);
  header += fmt::format(
      "# refresh policy {}, bucket cap {}, first bucket {}, links {} us and {} "
      "GB/s\n",
      options.refresh_policy.empty() ? "default" : options.refresh_policy,
      options.bucket_cap_mib ? fmt::format("{} MiB", *options.bucket_cap_mib)
                             : "default",
      options.first_bucket_mib
          ? fmt::format("{} MiB", *options.first_bucket_mib)
          : "default",
      options.link_latency_us,
      options.link_gb_per_s);
  return header + notes_on_cores(rows, environment.cores);
}

int report(
    const BenchOptions& options,
    const CommandLine& line,
    std::vector<train::ResultRow> rows,
    const std::string& text) {
  std::cout << text << std::flush;
  if (!options.json.empty()) {
    train::write_results(
        options.json,
        {line,
         program_environment(options.placement.threads),
         std::move(rows)});
  }
  return 0;
}

int run_as_worker(const BenchOptions& options, const CommandLine& line) {
  end_with_parent();
  const Mode mode{
      timed_strategy_from_name(options.strategies.at(0)),
      activity_from_name(options.activities.at(0)),
      options.placement.workers.value(),
      options.placement.threads,
      options.hooks.empty() ? "" : options.hooks.front()};
  const auto placement =
      resolve_placement(placement_of(mode, placement_request(options)));
  if (placement.is_launcher) {
    return launch_workers(placement, {line.begin() + 1, line.end()});
  }
  if (runs_python(mode.strategy)) {
    become_python_peer(
        options.python,
        mode,
        recipe_of(options),
        options.mode_index,
        *options.coordinator_port);
  }
  work_for_coordinator(
      placement,
      mode,
      recipe_of(options),
      options.mode_index,
      *options.coordinator_port);
  return 0;
}

int run_operators(const BenchOptions& options, const CommandLine& line) {
  const auto rows = measure_operators(options.batch, options.turns);
  const auto environment = program_environment(1);
  return report(
      options,
      line,
      rows,
      bench_header(options, environment, rows) + operator_table(rows));
}

int run_bench(const BenchOptions& options, const CommandLine& line) {
  if (options.coordinator_port) {
    return run_as_worker(options, line);
  }
  if (was_launched()) {
    throw ConfigError(
        "tandem bench: expected to start its workers itself, got the variables "
        "of a launcher. Run it without tandem launch or torchrun");
  }
  if (options.workload == kOperators) {
    return run_operators(options, line);
  }
  auto rows = run_modes(plan_of(options));
  const auto environment = program_environment(options.placement.threads);
  set_speedups(rows, environment.cores);
  const auto text = bench_header(options, environment, rows) +
      bench_table(rows, environment.cores) +
      figure_lines(rows, options.turns.steps_per_turn);
  return report(options, line, std::move(rows), text);
}

std::function<int()> declare_bench(CLI::App& app, const CommandLine& line) {
  const auto options = std::make_shared<BenchOptions>();
  add_bench_options(app, options);
  app.footer(
      "Every mode is first compared with the bare network; if one differs or "
      "does other work, nothing is timed and the exit code is 1.");
  return [options, line] { return run_bench(*options, line); };
}

} // namespace

Command bench_command() {
  return {
      "bench",
      "Verify, then time each strategy in turns, and print a table",
      declare_bench};
}

} // namespace tandem::bench
