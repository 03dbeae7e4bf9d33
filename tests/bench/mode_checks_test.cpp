#include "harness/mode_checks.h"

#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using tandem::bench::Activity;
using tandem::bench::ModeChecks;
using tandem::bench::ReadyReport;
using tandem::bench::VerificationError;

ReadyReport report(double difference, int64_t rows, int64_t flops) {
  ReadyReport report;
  report.verification.max_abs_diff = difference;
  report.verification.first_mismatch = "step 2: 'fc.weight'";
  report.rows = rows;
  report.flops = flops;
  return report;
}

std::string refusal(
    ModeChecks& checks,
    const std::vector<ReadyReport>& reports,
    Activity activity = Activity::kTrain) {
  try {
    checks.check("cnn/dp/2/8", activity, reports);
  } catch (const VerificationError& error) {
    return error.what_without_backtrace();
  }
  return "";
}

} // namespace

TEST_CASE("a mode that computes something else is refused", "[bench][BN-01]") {
  ModeChecks checks(8);
  CHECK(refusal(checks, {report(1e-12, 4, 10), report(1e-12, 4, 10)}).empty());
  CHECK_THAT(
      refusal(checks, {report(0, 4, 10), report(0.25, 4, 10)}),
      ContainsSubstring("cnn/dp/2/8") && ContainsSubstring("2.5e-01") &&
          ContainsSubstring("process 1") &&
          ContainsSubstring("step 2: 'fc.weight'"));
  CHECK_FALSE(
      refusal(checks, {report(std::nan(""), 4, 10), report(0, 4, 10)}).empty());
}

TEST_CASE("a mode that does other work is refused", "[bench][BN-04]") {
  ModeChecks checks(8);
  CHECK(refusal(checks, {report(0, 8, 20)}).empty());
  CHECK(refusal(checks, {report(0, 4, 10), report(0, 4, 10)}).empty());
  CHECK_THAT(
      refusal(checks, {report(0, 4, 10), report(0, 3, 10)}),
      ContainsSubstring("expected 8 rows") && ContainsSubstring("got 7"));
  CHECK_THAT(
      refusal(checks, {report(0, 4, 10), report(0, 4, 11)}),
      ContainsSubstring("expected 20 ") && ContainsSubstring("got 21"));
  CHECK(refusal(checks, {report(0, 8, 5)}, Activity::kEvaluate).empty());
}
