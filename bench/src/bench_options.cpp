#include "bench_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "harness/comm_hook_choice.h"
#include "placement/placement_options.h"
#include "placement/refresh_policy_names.h"

namespace tandem::bench {

namespace {

void add_mode_options(CLI::App& app, BenchOptions& options) {
  app.add_option("--workload", options.workload, "What is timed")
      ->check(CLI::IsMember(
          {"cnn",
           "mlp",
           "mlp-wide",
           "transformer",
           "many-small-tensors",
           "operators"}))
      ->capture_default_str();
  app.add_option(
         "--strategy",
         options.strategies,
         "Wrappers; bare is none, ddp-nosync workers that never talk, the "
         "bound of all others. Peers of ddp: PyTorch's C++ reducer "
         "(ddp-c10d, ddp-c10d-views), an all-reduce per parameter "
         "(ddp-naive), Python (python-ddp, python-nosync)")
      ->delimiter(',')
      ->check(CLI::IsMember(timed_strategy_names()))
      ->capture_default_str();
  app.add_option(
         "--activity",
         options.activities,
         "train; mean-loss: the same, the loss in the replicas; evaluate; "
         "refresh, of dp's replicas; copy-each: the same tensor by tensor. "
         "Default: train; of many-small-tensors all but mean-loss")
      ->delimiter(',')
      ->check(CLI::IsMember(activity_names()));
  app.add_option(
         "--hook",
         options.hooks,
         "Times ddp with each of these communication hooks too, and measures "
         "the error of its gradients against the plain mean")
      ->delimiter(',')
      ->check(CLI::IsMember(comm_hook_names()));
}

void add_size_options(CLI::App& app, BenchOptions& options) {
  app.add_option("--batch", options.batch, "Rows of a step, of all workers")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--steps", options.turns.steps, "Timed steps of each mode")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
         "--steps-per-turn",
         options.turns.steps_per_turn,
         "Timed steps of a mode until the next one's turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
         "--warm-up",
         options.turns.warm_up_steps,
         "Untimed steps of each mode before")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of initial values and data")
      ->capture_default_str();
}

void add_wrapper_options(CLI::App& app, BenchOptions& options) {
  app.add_option(
         "--refresh-policy",
         options.refresh_policy,
         "When dp's replicas get parameters; default: dp's")
      ->check(CLI::IsMember(refresh_policy_names()));
  app.add_option(
         "--bucket-cap-mib",
         options.bucket_cap_mib,
         "Size at which buckets of gradients close; default: the wrapper's")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--first-bucket-mib",
         options.first_bucket_mib,
         "The same of the first bucket of ddp and its peers; default: theirs")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--link-latency-us",
         options.link_latency_us,
         "Shortest time of a copy between simulated devices")
      ->check(CLI::NonNegativeNumber);
  app.add_option(
         "--link-gb-per-s",
         options.link_gb_per_s,
         "Speed of such copies; 0: the host's")
      ->check(CLI::NonNegativeNumber);
}

// No part of what a user may say.
void add_worker_options(CLI::App& app, BenchOptions& options) {
  app.add_option("--coordinator-port", options.coordinator_port)->group("");
  app.add_option("--mode-index", options.mode_index)->group("");
}

} // namespace

void add_bench_options(
    CLI::App& app,
    const std::shared_ptr<BenchOptions>& options) {
  add_mode_options(app, *options);
  add_placement_options(app, {options, &options->placement});
  add_size_options(app, *options);
  add_wrapper_options(app, *options);
  app.add_option(
         "--python",
         options->python,
         "Python with torch, for python-ddp")
      ->capture_default_str();
  app.add_option("--json", options->json, "Results file to write");
  add_worker_options(app, *options);
}

CommandLine worker_words(
    const BenchOptions& options,
    const Mode& mode,
    int64_t index,
    int64_t port) {
  CommandLine words{
      "bench",
      "--workload",
      options.workload,
      "--strategy",
      timed_strategy_name(mode.strategy),
      "--activity",
      activity_name(mode.activity),
      "--batch",
      std::to_string(options.batch),
      "--seed",
      std::to_string(options.seed),
      "--link-latency-us",
      fmt::format("{}", options.link_latency_us),
      "--link-gb-per-s",
      fmt::format("{}", options.link_gb_per_s),
      "--python",
      options.python,
      "--mode-index",
      std::to_string(index),
      "--coordinator-port",
      std::to_string(port)};
  if (!mode.hook.empty()) {
    words.insert(words.end(), {"--hook", mode.hook});
  }
  if (!options.refresh_policy.empty()) {
    words.insert(words.end(), {"--refresh-policy", options.refresh_policy});
  }
  if (options.bucket_cap_mib) {
    words.insert(
        words.end(),
        {"--bucket-cap-mib", fmt::format("{}", *options.bucket_cap_mib)});
  }
  if (options.first_bucket_mib) {
    words.insert(
        words.end(),
        {"--first-bucket-mib", fmt::format("{}", *options.first_bucket_mib)});
  }
  auto placement = options.placement;
  placement.workers = mode.workers;
  placement.threads = mode.threads;
  for (auto& word : placement_words(placement)) {
    words.push_back(std::move(word));
  }
  return words;
}

} // namespace tandem::bench
