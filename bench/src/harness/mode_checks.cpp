#include "harness/mode_checks.h"

#include <cmath>

#include <fmt/format.h>

#include "verify/verify_run.h"

namespace tandem::bench {

namespace {

void check_results(
    const std::string& mode_name,
    const std::vector<ReadyReport>& reports) {
  for (size_t worker = 0; worker < reports.size(); ++worker) {
    const auto& found = reports[worker].verification;
    if (!(found.max_abs_diff < kVerifyTolerance)) {
      throw VerificationError(fmt::format(
          "[bench] {}: expected the bare network's results within {:.0e}, got "
          "a difference of {:.1e} in process {}, first at {}. Nothing is timed",
          mode_name,
          kVerifyTolerance,
          found.max_abs_diff,
          worker,
          found.first_mismatch));
    }
  }
}

void check_gradients(
    const std::string& mode_name,
    const std::vector<ReadyReport>& reports) {
  for (size_t worker = 0; worker < reports.size(); ++worker) {
    const double error = reports[worker].step_gradient_error;
    if (!std::isfinite(error)) {
      throw VerificationError(fmt::format(
          "[bench] {}: expected gradients near the ranks' mean, got an error "
          "of {} in process {}. Nothing is timed",
          mode_name,
          error,
          worker));
    }
  }
}

} // namespace

void ModeChecks::check(
    const std::string& mode_name,
    Activity activity,
    const std::vector<ReadyReport>& reports) {
  check_results(mode_name, reports);
  check_gradients(mode_name, reports);
  int64_t rows = 0;
  int64_t flops = 0;
  for (const auto& report : reports) {
    rows += report.rows;
    flops += report.flops;
  }
  if (rows != batch_) {
    throw VerificationError(fmt::format(
        "[bench] {}: expected {} rows a step, got {}. Nothing is timed",
        mode_name,
        batch_,
        rows));
  }
  const auto [first, is_first] = first_.try_emplace(activity, mode_name, flops);
  if (!is_first && flops != first->second.second) {
    throw VerificationError(fmt::format(
        "[bench] {}: expected {} floating-point operations a step, as {} has, "
        "got {}. Nothing is timed",
        mode_name,
        first->second.second,
        first->second.first,
        flops));
  }
}

} // namespace tandem::bench
