#include "report/bench_table.h"

#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/order_statistics.h>

#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

constexpr const char* kBenchLine =
    "{:<20} {:>7} {:>7}  {:>8} {:>8} {:>8} {:>8} {:>5}  {:>9} {:>6} {:>6}  "
    "{}\n";

std::string number(double value) {
  return fmt::format("{:.2f}", value);
}

/// Speed of `row` over that of `base`.
std::string ratio(
    const train::ResultRow& row,
    const train::ResultRow* base,
    int64_t cores) {
  if (base == nullptr || !row.samples_per_s || !base->samples_per_s ||
      !has_cores(row, cores) || !has_cores(*base, cores)) {
    return "-";
  }
  return number(*row.samples_per_s / *base->samples_per_s);
}

std::string mebibytes(const std::vector<int64_t>& bytes) {
  std::vector<std::string> texts;
  texts.reserve(bytes.size());
  for (const auto value : bytes) {
    texts.push_back(
        fmt::format("{:.1f}", static_cast<double>(value) / (1 << 20)));
  }
  return fmt::format("{}", fmt::join(texts, " "));
}

std::string table_line(
    const train::ResultRow& row,
    const std::vector<train::ResultRow>& rows,
    int64_t cores) {
  const auto times = order_statistics(row.step_ms);
  const auto* const nosync =
      find_row(rows, "ddp-nosync", row.variant, row.threads_per_worker);
  return fmt::format(
      kBenchLine,
      mode_of(row),
      row.workers,
      row.threads_per_worker,
      number(times.p10),
      number(times.p50),
      number(times.p90),
      number(times.min),
      times.count,
      row.samples_per_s ? fmt::format("{:.0f}", *row.samples_per_s) : "-",
      ratio(row, find_row(rows, "single", row.variant, 1), cores),
      ratio(row, nosync, cores),
      mebibytes(row.peak_bytes));
}

} // namespace

void set_speedups(std::vector<train::ResultRow>& rows, int64_t cores) {
  for (auto& row : rows) {
    const auto* const base = find_row(rows, "single", row.variant, 1);
    if (base != nullptr && row.samples_per_s && has_cores(row, cores)) {
      row.speedup = *row.samples_per_s / base->samples_per_s.value();
    }
  }
}

std::string bench_table(
    const std::vector<train::ResultRow>& rows,
    int64_t cores) {
  auto text = fmt::format(
      kBenchLine,
      "mode",
      "workers",
      "threads",
      "p10",
      "p50",
      "p90",
      "min",
      "count",
      "samples/s",
      "times",
      "of",
      "peak MiB");
  text += fmt::format(
      kBenchLine,
      "",
      "",
      "each",
      "ms",
      "ms",
      "ms",
      "ms",
      "",
      "",
      "single",
      "nosync",
      "of each device or process");
  for (const auto& row : rows) {
    text += table_line(row, rows, cores);
  }
  return text;
}

} // namespace tandem::bench
