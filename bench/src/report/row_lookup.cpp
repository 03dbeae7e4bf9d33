#include "report/row_lookup.h"

#include <fmt/format.h>

#include <tandem/core/order_statistics.h>

namespace tandem::bench {

std::string mode_of(const train::ResultRow& row) {
  auto text = row.strategy;
  for (const auto& part : {row.variant, row.hook}) {
    if (!part.empty()) {
      text += " " + part;
    }
  }
  return text;
}

const train::ResultRow* find_row(
    const std::vector<train::ResultRow>& rows,
    const std::string& strategy,
    const std::string& variant,
    int64_t threads) {
  for (const auto& row : rows) {
    if (row.strategy == strategy && row.variant == variant &&
        row.hook.empty() && row.threads_per_worker == threads) {
      return &row;
    }
  }
  return nullptr;
}

double median_ms(const train::ResultRow& row) {
  return order_statistics(row.step_ms).p50;
}

bool has_cores(const train::ResultRow& row, int64_t cores) {
  return row.device == "cuda" || row.workers * row.threads_per_worker <= cores;
}

std::string notes_on_cores(
    const std::vector<train::ResultRow>& rows,
    int64_t cores) {
  std::string notes;
  for (const auto& row : rows) {
    if (!has_cores(row, cores)) {
      notes += fmt::format(
          "# {}: more threads than cores, so its speed says nothing\n",
          row.name());
    }
  }
  return notes;
}

} // namespace tandem::bench
