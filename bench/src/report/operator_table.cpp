#include "report/operator_table.h"

#include <fmt/format.h>

#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

using train::ResultRow;

constexpr const char* kOperatorLine =
    "{:<20} {:>11}  {:<20} {:>11} {:>10} {:>8}\n";

/// "dp cnn-step/sim".
std::string label_of(const ResultRow& row) {
  return fmt::format("{} {}", row.strategy, row.variant);
}

/// What `row` is compared with; null if nothing.
const ResultRow* base_of(
    const ResultRow& row,
    const std::vector<ResultRow>& rows) {
  auto variant = row.variant;
  if (row.strategy == "bare") {
    if (row.device == "cpu") {
      return nullptr;
    }
    variant = variant.substr(0, variant.find('/')) + "/cpu";
  }
  return find_row(rows, "bare", variant, row.threads_per_worker);
}

} // namespace

std::string operator_table(const std::vector<ResultRow>& rows) {
  auto text = fmt::format(
      kOperatorLine,
      "median of",
      "us",
      "against",
      "us",
      "more us",
      "more %");
  for (const auto& row : rows) {
    const auto* const base = base_of(row, rows);
    if (base == nullptr) {
      continue;
    }
    const double us = 1000 * median_ms(row);
    const double base_us = 1000 * median_ms(*base);
    text += fmt::format(
        kOperatorLine,
        label_of(row),
        fmt::format("{:.3f}", us),
        label_of(*base),
        fmt::format("{:.3f}", base_us),
        fmt::format("{:+.3f}", us - base_us),
        fmt::format("{:+.2f}", 100 * (us / base_us - 1)));
  }
  return text;
}

} // namespace tandem::bench
