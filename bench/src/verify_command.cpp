#include "commands.h"

#include <iostream>
#include <iterator>
#include <memory>
#include <vector>

#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tandem/comm/comm.h>
#include <tandem/train/results.h>

#include "placement/placement_options.h"
#include "placement/refresh_policy_names.h"
#include "processes/rerun.h"
#include "program_environment.h"
#include "verify/verify_run.h"

namespace tandem::bench {

namespace {

struct VerifyCommandOptions {
  std::string model = "cnn";
  std::vector<std::string> strategies{"dp", "ddp"};
  /// Empty: dp's default.
  std::string refresh;
  bool keep_buffers_local = false;
  std::string json;
};

double max_over_ranks(const WorkerScope& worker, double value) {
  auto tensor = at::full({}, value, at::kDouble);
  if (worker.strategy() == Strategy::kDDP) {
    comm::all_reduce(tensor, comm::ReduceOp::kMax);
  }
  return tensor.item<double>();
}

train::ResultRow verify_row(
    const WorkerScope& worker,
    const VerifyRecipe& recipe,
    double max_abs_diff) {
  train::ResultRow row;
  row.workload = architecture_name(recipe.model);
  row.strategy = strategy_name(worker.strategy());
  row.device = at::Device(worker.device().type()).str();
  row.backend = worker.backend();
  row.workers = worker.workers();
  row.threads_per_worker = worker.threads();
  row.batch = verify_batch(worker.workers());
  row.verify_max_abs_diff = max_abs_diff;
  return row;
}

// Verifies one model as this worker. Every rank that finds a difference says
// where it began.
train::ResultRow verify_model(
    const WorkerScope& worker,
    const VerifyRecipe& recipe) {
  const auto report = verify(worker, recipe);
  const double largest = max_over_ranks(worker, report.max_abs_diff);
  auto row = verify_row(worker, recipe, largest);
  if (worker.is_main()) {
    std::cout << fmt::format(
                     "verify {}: largest difference from single {:.1e}, limit "
                     "{:.0e}: {}",
                     row.name(),
                     largest,
                     kVerifyTolerance,
                     largest < kVerifyTolerance ? "ok" : "FAILED")
              << '\n'
              << std::flush;
  }
  if (!report.first_mismatch.empty()) {
    std::cerr << fmt::format(
                     "verify {}: first to differ: {}",
                     row.name(),
                     report.first_mismatch)
              << '\n'
              << std::flush;
  }
  return row;
}

void write_if_asked(
    const VerifyCommandOptions& options,
    int64_t threads,
    const CommandLine& line,
    std::vector<train::ResultRow> rows) {
  if (!options.json.empty()) {
    train::write_results(
        options.json,
        {line, program_environment(threads), std::move(rows)});
  }
}

int verify_as_worker(
    const VerifyCommandOptions& options,
    const Placement& placement,
    const CommandLine& line) {
  const WorkerScope worker(placement);
  VerifyRecipe recipe;
  if (!options.refresh.empty()) {
    recipe.refresh_policy = refresh_policy_from_name(options.refresh);
  }
  recipe.broadcast_buffers = !options.keep_buffers_local;
  std::vector<train::ResultRow> rows;
  bool all_equal = true;
  for (const auto model :
       {architecture_from_name(options.model), Architecture::kProbe}) {
    recipe.model = model;
    rows.push_back(verify_model(worker, recipe));
    all_equal =
        all_equal && *rows.back().verify_max_abs_diff < kVerifyTolerance;
  }
  if (worker.is_main()) {
    write_if_asked(options, worker.threads(), line, std::move(rows));
  }
  return all_equal ? 0 : 1;
}

// Each strategy has processes of its own: ddp's cannot be started from one that
// dp's threads have run in.
int verify_each(
    const VerifyCommandOptions& options,
    const PlacementRequest& request,
    const CommandLine& line) {
  int exit_code = 0;
  std::vector<train::ResultRow> rows;
  for (const auto& strategy : options.strategies) {
    CommandLine words{
        "verify",
        "--model",
        options.model,
        "--strategy",
        strategy};
    if (!options.refresh.empty()) {
      words.insert(words.end(), {"--refresh-policy", options.refresh});
    }
    if (options.keep_buffers_local) {
      words.emplace_back("--no-broadcast-buffers");
    }
    for (auto& word : placement_words(request)) {
      words.push_back(std::move(word));
    }
    auto results = rerun_for_results(std::move(words));
    exit_code = exit_code == 0 ? results.exit_code : exit_code;
    std::move(
        results.rows.begin(),
        results.rows.end(),
        std::back_inserter(rows));
  }
  write_if_asked(options, request.threads, line, std::move(rows));
  return exit_code;
}

int run_verify(
    const VerifyCommandOptions& options,
    PlacementRequest request,
    const CommandLine& line) {
  if (options.strategies.size() != 1) {
    return verify_each(options, request, line);
  }
  request.strategy = strategy_from_name(options.strategies.front());
  const auto placement = resolve_placement(request);
  if (placement.is_launcher) {
    return launch_workers(placement, {line.begin() + 1, line.end()});
  }
  return verify_as_worker(options, placement, line);
}

std::function<int()> declare_verify(CLI::App& app, const CommandLine& line) {
  const auto options = std::make_shared<VerifyCommandOptions>();
  const auto request = std::make_shared<PlacementRequest>();
  app.add_option("--model", options->model, "Network, besides the probe")
      ->check(CLI::IsMember({"cnn", "mlp"}))
      ->capture_default_str();
  app.add_option("--strategy", options->strategies, "Wrappers")
      ->delimiter(',')
      ->check(CLI::IsMember({"single", "dp", "ddp"}))
      ->capture_default_str();
  add_placement_options(app, request);
  app.add_option(
         "--refresh-policy",
         options->refresh,
         "When dp's replicas get parameters; with manual they keep theirs, "
         "which verify must find. Default: dp's")
      ->check(CLI::IsMember(refresh_policy_names()));
  app.add_flag(
      "--no-broadcast-buffers",
      options->keep_buffers_local,
      "ddp's ranks keep their buffers, which verify must find");
  app.add_option("--json", options->json, "Results file to write");
  return
      [options, request, line] { return run_verify(*options, *request, line); };
}

} // namespace

Command verify_command() {
  return {
      "verify",
      "Compare dp and ddp with one device in double precision",
      declare_verify};
}

} // namespace tandem::bench
