#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <tandem/core/counters.h>
#include <tandem/train/environment.h>
#include <tandem/train/trainer.h>

namespace tandem::train {

/// One thing that was trained, timed or verified. What was not measured is
/// empty here and absent in the file.
struct ResultRow {
  std::string workload;
  /// "single", "dp" or "ddp"; in a benchmark also "bare" and ddp's peers.
  std::string strategy;
  /// What was timed, if not a training step: "evaluate", "add/sim".
  std::string variant;
  /// ddp's communication hook; empty: none.
  std::string hook;
  /// "cpu", "sim" or "cuda".
  std::string device;
  /// What gradients travelled through: "gloo", "nccl".
  std::optional<std::string> backend;
  int64_t workers = 1;
  /// Intra-op threads of each worker.
  int64_t threads_per_worker = 1;
  /// Rows of a step, over all workers.
  int64_t batch = 0;
  /// Each step's time; the file has its order statistics besides.
  std::vector<double> step_ms;
  std::optional<double> samples_per_s;
  /// Against one worker with one thread, measured in the same run.
  std::optional<double> speedup;
  std::optional<double> verify_max_abs_diff;
  /// Of a step's matrix products and convolutions, over all workers.
  std::optional<int64_t> flops_per_step;
  /// That a step copied from the first device to the others.
  std::optional<int64_t> bytes_from_first_device;
  /// Mean of a step's communication, from its start during backward until the
  /// gradients are there; and of the part that backward hid.
  std::optional<double> communication_ms;
  std::optional<double> hidden_communication_ms;
  /// How far a hook's gradients are from the ranks' mean, over the mean's norm:
  /// of a step, and of the sum of several steps'.
  std::optional<double> step_gradient_error;
  std::optional<double> summed_gradient_error;
  /// What one rank's gradients take in a step, and what the hook sent for them.
  std::optional<int64_t> gradient_bytes;
  std::optional<int64_t> hook_bytes;
  std::optional<double> test_loss;
  std::optional<double> test_accuracy;
  std::vector<LoggedLoss> losses;
  /// Of each device, or of each process (VmHWM) on the CPU.
  std::vector<int64_t> peak_bytes;
  std::optional<int64_t> steps_run;
  std::optional<Counters> counters;

  /// "cnn/ddp/2/64": workload, strategy, workers, batch. "/evaluate", the
  /// variant, follows if there is one, "/hook=top_k" if there is a hook, and
  /// "/threads=4" if a worker has several.
  std::string name() const;
  /// Sum of `peak_bytes`.
  int64_t total_peak_bytes() const;
};

/// The content of a results file, schema "tandem-results/1".
struct Results {
  std::vector<std::string> command;
  Environment environment;
  std::vector<ResultRow> rows;
};

std::string to_json(const Results& results);
/// **Throws** `ConfigError` naming `origin` and what is wrong with the text.
Results results_from_json(const std::string& text, const std::string& origin);

/// Replaces the file in one step: a reader sees the old content or the new.
/// **Throws** `ConfigError` naming the file if it cannot be written.
void write_results(const std::filesystem::path& path, const Results& results);
/// **Throws** `ConfigError` naming the file.
Results read_results(const std::filesystem::path& path);

} // namespace tandem::train
