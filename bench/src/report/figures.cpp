#include "report/figures.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include <tandem/core/order_statistics.h>

#include "harness/gradient_error.h"
#include "report/row_lookup.h"

namespace tandem::bench {

namespace {

using train::ResultRow;

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

/// Median of each turn's step times.
std::vector<double> turn_medians(const ResultRow& row, int64_t steps_per_turn) {
  std::vector<double> medians;
  const auto& all = row.step_ms;
  const auto size = static_cast<size_t>(steps_per_turn);
  for (size_t begin = 0; begin < all.size(); begin += size) {
    const auto end = std::min(begin + size, all.size());
    medians.push_back(
        order_statistics({all.begin() + static_cast<std::ptrdiff_t>(begin),
                          all.begin() + static_cast<std::ptrdiff_t>(end)})
            .p50);
  }
  return medians;
}

/// How many times as fast as `peer`, turn by turn: turns of both lie side by
/// side in time, so that what slows the machine slows both.
std::string gain_over(
    const ResultRow& row,
    const ResultRow& peer,
    int64_t steps_per_turn) {
  const auto own = turn_medians(row, steps_per_turn);
  const auto others = turn_medians(peer, steps_per_turn);
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(own.size(), others.size()); ++i) {
    ratios.push_back(others[i] / own[i]);
  }
  const auto found = order_statistics(ratios);
  return fmt::format(
      "# {}: {:.3f} times as fast as {}, turns from {:.3f} (p10) to {:.3f} "
      "(p90)\n",
      mode_of(row),
      found.p50,
      peer.strategy,
      found.p10,
      found.p90);
}

/// Of ddp with a hook, ddp without one.
bool is_peer_of(const ResultRow& row, const ResultRow& other) {
  if (!other.variant.empty() || !other.hook.empty()) {
    return false;
  }
  if (!row.hook.empty()) {
    return other.strategy == row.strategy;
  }
  return other.strategy.starts_with("ddp-") ||
      other.strategy.starts_with("python-");
}

std::string gains_of_ddp(
    const std::vector<ResultRow>& rows,
    int64_t steps_per_turn) {
  std::string text;
  for (const auto& row : rows) {
    if (row.strategy != "ddp" || !row.variant.empty()) {
      continue;
    }
    for (const auto& peer : rows) {
      if (is_peer_of(row, peer)) {
        text += gain_over(row, peer, steps_per_turn);
      }
    }
  }
  return text;
}

std::string hook_quality(const ResultRow& row) {
  if (!row.hook_bytes || !row.gradient_bytes) {
    return "";
  }
  const auto sent = static_cast<double>(*row.hook_bytes);
  const auto whole = static_cast<double>(*row.gradient_bytes);
  auto line = fmt::format(
      "# {}: sends {:.3f} of {:.3f} MiB in a step, {:.1f} % saved",
      mode_of(row),
      sent / (1 << 20),
      whole / (1 << 20),
      100 * (1 - sent / whole));
  if (row.step_gradient_error && row.summed_gradient_error) {
    line += fmt::format(
        "; gradients differ from the mean by {:.1e} of its norm, their sum "
        "over "
        "{} steps by {:.1e}",
        *row.step_gradient_error,
        kErrorSteps,
        *row.summed_gradient_error);
  }
  return line + "\n";
}

std::string hidden_share(const ResultRow& row) {
  if (!row.communication_ms || !row.hidden_communication_ms) {
    return "";
  }
  return fmt::format(
      "# {}: {:.2f} ms of communication in a step, {:.0f} % hidden by "
      "backward\n",
      mode_of(row),
      *row.communication_ms,
      100 * *row.hidden_communication_ms / *row.communication_ms);
}

} // namespace

std::string figure_lines(
    const std::vector<ResultRow>& rows,
    int64_t steps_per_turn) {
  std::string text;
  for (const auto& row : rows) {
    const int64_t threads = row.threads_per_worker;
    text += wrapper_cost(row, find_row(rows, "bare", row.variant, threads));
    text += refresh_gain(row, find_row(rows, "dp", "copy-each", threads));
    text += sent_bytes(row);
    text += imbalance(row);
    text += hidden_share(row);
    text += hook_quality(row);
  }
  return text + gains_of_ddp(rows, steps_per_turn);
}

} // namespace tandem::bench
