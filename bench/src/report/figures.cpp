#include "report/figures.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

using train::ResultRow;

std::string mode_of(const ResultRow& row) {
  return row.variant.empty() ? row.strategy
                             : fmt::format("{} {}", row.strategy, row.variant);
}

std::string wrapper_cost(const ResultRow& row, const ResultRow* bare) {
  if (bare == nullptr || &row == bare || row.workers != 1) {
    return "";
  }
  return fmt::format(
      "# {} on one device: {:.3f} ms a step, {:+.2f} % of the bare module's "
      "{:.3f} ms\n",
      mode_of(row),
      median_ms(row),
      100 * (median_ms(row) / median_ms(*bare) - 1),
      median_ms(*bare));
}

std::string refresh_gain(const ResultRow& row, const ResultRow* copy_each) {
  if (copy_each == nullptr || row.variant != "refresh") {
    return "";
  }
  return fmt::format(
      "# refresh: {:.2f} ms, {:.1f} times faster than one copy per tensor, "
      "{:.2f} ms\n",
      median_ms(row),
      median_ms(*copy_each) / median_ms(row),
      median_ms(*copy_each));
}

std::string sent_bytes(const ResultRow& row) {
  if (!row.bytes_from_first_device) {
    return "";
  }
  return fmt::format(
      "# {}: a step sends {} bytes from the first device to the others\n",
      mode_of(row),
      *row.bytes_from_first_device);
}

std::string imbalance(const ResultRow& row) {
  if (row.strategy != "dp" || row.peak_bytes.size() < 2) {
    return "";
  }
  const auto first = static_cast<double>(row.peak_bytes.front());
  const auto others = static_cast<double>(
      *std::max_element(row.peak_bytes.begin() + 1, row.peak_bytes.end()));
  return fmt::format(
      "# {}: the first device's peak is {:.1f} MiB, {:.2f} times the {:.1f} "
      "MiB of the others'\n",
      mode_of(row),
      first / (1 << 20),
      first / others,
      others / (1 << 20));
}

} // namespace

std::string figure_lines(const std::vector<ResultRow>& rows) {
  std::string text;
  for (const auto& row : rows) {
    const int64_t threads = row.threads_per_worker;
    text += wrapper_cost(row, find_row(rows, "bare", row.variant, threads));
    text += refresh_gain(row, find_row(rows, "dp", "copy-each", threads));
    text += sent_bytes(row);
    text += imbalance(row);
  }
  return text;
}

} // namespace tandem::bench
