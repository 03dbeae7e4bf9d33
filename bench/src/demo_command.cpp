#include "commands.h"

#include <algorithm>
#include <iostream>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <tandem/core/errors.h>
#include <tandem/train/results.h>

#include "demo/demo_table.h"
#include "placement/placement_options.h"
#include "processes/rerun.h"
#include "program_environment.h"
#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

struct DemoOptions {
  std::string model = "cnn";
  std::string data = "fashion-mnist";
  std::string data_dir;
  std::string batch = "128";
  std::string json;
};

/// One line of the table.
struct DemoRun {
  std::string strategy;
  PlacementRequest placement;
};

std::vector<DemoRun> plan_runs(const PlacementRequest& request, int64_t cores) {
  auto single = request;
  single.workers = 1;
  std::vector<DemoRun> runs{
      {"single", single},
      {"dp", request},
      {"ddp", request}};
  if (cores > 1 && request.device != "cuda") {
    single.threads = cores;
    runs.insert(runs.begin() + 1, {"single", single});
  }
  return runs;
}

CommandLine train_words(const DemoOptions& options, const DemoRun& run) {
  CommandLine words{
      "train",
      "--model",
      options.model,
      "--strategy",
      run.strategy,
      "--batch",
      options.batch,
      "--data",
      options.data};
  if (!options.data_dir.empty()) {
    words.insert(words.end(), {"--data-dir", options.data_dir});
  }
  for (auto& word : placement_words(run.placement)) {
    words.push_back(std::move(word));
  }
  return words;
}

// Runs one step of the demo, appends its rows, and returns its exit code.
int run_step(
    const std::string& title,
    CommandLine words,
    std::vector<train::ResultRow>& rows) {
  std::cout << "\n== " << title << '\n' << std::flush;
  auto results = rerun_for_results(std::move(words));
  for (auto& row : results.rows) {
    rows.push_back(std::move(row));
  }
  return results.exit_code;
}

// Of rows that were trained; against single with one thread.
void add_speedups(std::vector<train::ResultRow>& rows) {
  const auto& baseline = rows.front().samples_per_s.value();
  for (auto& row : rows) {
    row.speedup = row.samples_per_s.value() / baseline;
  }
}

std::string demo_header(
    const DemoOptions& options,
    const train::Environment& environment,
    const std::vector<train::ResultRow>& rows) {
  const auto header = fmt::format(
      "# tandem {}, LibTorch {}, {} cores ({}); {} on {}, one epoch, {} images "
      "a step, every strategy in processes of its own\n",
      environment.tandem,
      environment.torch,
      environment.cores,
      environment.cpu,
      options.model,
      options.data,
      options.batch);
  return header + notes_on_cores(rows, environment.cores);
}

std::string demo_footer(const std::vector<train::ResultRow>& verified) {
  double largest = 0;
  for (const auto& row : verified) {
    largest = std::max(largest, row.verify_max_abs_diff.value());
  }
  return fmt::format(
      "# In double precision dp and ddp differ from single by {:.1e} at most "
      "(verify);\n# in float, as here, rounding drives long trainings apart.\n",
      largest);
}

int run_demo(
    const DemoOptions& options,
    const PlacementRequest& request,
    const CommandLine& line) {
  const auto environment = program_environment(1);
  std::vector<train::ResultRow> verified;
  CommandLine verify_words{"verify", "--model", options.model};
  for (auto& word : placement_words(request)) {
    verify_words.push_back(std::move(word));
  }
  if (const int code = run_step("verify", verify_words, verified)) {
    return code;
  }
  std::vector<train::ResultRow> rows;
  for (const auto& run : plan_runs(request, environment.cores)) {
    const auto title = fmt::format(
        "train with {}, {} thread(s) per worker",
        run.strategy,
        run.placement.threads);
    if (const int code = run_step(title, train_words(options, run), rows)) {
      return code;
    }
  }
  add_speedups(rows);
  std::cout << '\n'
            << demo_header(options, environment, rows) << demo_table(rows)
            << demo_footer(verified) << std::flush;
  if (!options.json.empty()) {
    rows.insert(rows.end(), verified.begin(), verified.end());
    train::write_results(options.json, {line, environment, rows});
  }
  return 0;
}

std::function<int()> declare_demo(CLI::App& app, const CommandLine& line) {
  const auto options = std::make_shared<DemoOptions>();
  const auto request = std::make_shared<PlacementRequest>();
  app.add_option("--model", options->model, "Network")
      ->check(CLI::IsMember({"cnn", "mlp"}))
      ->capture_default_str();
  app.add_option("--data", options->data, "What to learn")
      ->check(CLI::IsMember({"fashion-mnist", "synthetic"}))
      ->capture_default_str();
  app.add_option("--data-dir", options->data_dir, "Folder of idx files");
  app.add_option("--batch", options->batch, "Images of a step, of all workers")
      ->capture_default_str();
  add_device_options(app, request);
  app.add_option("--json", options->json, "Results file to write");
  return
      [options, request, line] { return run_demo(*options, *request, line); };
}

} // namespace

Command demo_command() {
  return {
      "demo",
      "Verify, train one epoch with each strategy, and print a table",
      declare_demo};
}

} // namespace tandem::bench
