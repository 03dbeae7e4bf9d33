#include "demo/demo_table.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace tandem::bench {

namespace {

constexpr const char* kRowFormat =
    "{:<8} {:>7} {:>7}  {:>8} {:>8} {:>8}  {:>8} {:>9} {:>9}  {:>6}\n";

// Speed of the single row with the fewest or the most threads.
struct Baselines {
  std::optional<double> one_thread;
  std::optional<double> all_cores;
};

Baselines find_baselines(const std::vector<train::ResultRow>& rows) {
  Baselines baselines;
  int64_t most_threads = 0;
  for (const auto& row : rows) {
    if (row.strategy != "single" || !row.samples_per_s) {
      continue;
    }
    if (row.threads_per_worker == 1) {
      baselines.one_thread = row.samples_per_s;
    }
    if (row.threads_per_worker > most_threads) {
      most_threads = row.threads_per_worker;
      baselines.all_cores = row.samples_per_s;
    }
  }
  return baselines;
}

std::optional<double> early_loss(const train::ResultRow& row) {
  for (const auto& [step, loss] : row.losses) {
    if (step == kDemoEarlyStep) {
      return loss;
    }
  }
  return std::nullopt;
}

std::string number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string ratio(
    const std::optional<double>& value,
    const std::optional<double>& base) {
  return value && base ? fmt::format("{:.2f}", *value / *base) : "-";
}

std::string memory(const train::ResultRow& row) {
  return row.peak_bytes.empty()
      ? "-"
      : fmt::format("{}", row.total_peak_bytes() >> 20);
}

std::string percent(const std::optional<double>& share) {
  return share ? fmt::format("{:.2f}", 100 * *share) : "-";
}

} // namespace

std::string demo_table(const std::vector<train::ResultRow>& rows) {
  const auto baselines = find_baselines(rows);
  auto text = fmt::format(
      kRowFormat,
      "strategy",
      "workers",
      "threads",
      "loss at",
      "loss on",
      "accuracy",
      "images/s",
      "times 1",
      "times all",
      "memory");
  text += fmt::format(
      kRowFormat,
      "",
      "",
      "each",
      fmt::format("step {}", kDemoEarlyStep),
      "test",
      "%",
      "",
      "thread",
      "cores",
      "MiB");
  for (const auto& row : rows) {
    text += fmt::format(
        kRowFormat,
        row.strategy,
        row.workers,
        row.threads_per_worker,
        number(early_loss(row), "{:.4f}"),
        number(row.test_loss, "{:.4f}"),
        percent(row.test_accuracy),
        number(row.samples_per_s, "{:.0f}"),
        ratio(row.samples_per_s, baselines.one_thread),
        ratio(row.samples_per_s, baselines.all_cores),
        memory(row));
  }
  return text;
}

} // namespace tandem::bench
