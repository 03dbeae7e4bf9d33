#include "program.h"
#include "tandem_catch.h"

using Catch::Matchers::ContainsSubstring;
using tandem::bench::test::run_for_results;

TEST_CASE(
    "tandem demo verifies, trains each way, and prints and writes a table",
    "[bench][slow]") {
  const auto ended =
      run_for_results({"demo", "--model", "mlp", "--data", "synthetic"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK_THAT(
      ended.out,
      ContainsSubstring("== verify") &&
          ContainsSubstring("strategy workers threads") &&
          ContainsSubstring("\nsingle         1       1") &&
          ContainsSubstring("\ndp ") && ContainsSubstring("\nddp ") &&
          ContainsSubstring("In double precision"));
  CHECK_THAT(
      ended.err,
      ContainsSubstring("Replica 0 holds more than any other") &&
          ContainsSubstring("of optimizer state"));
  size_t trained = 0;
  size_t verified = 0;
  for (const auto& row : ended.rows) {
    verified += row.verify_max_abs_diff.has_value() ? 1 : 0;
    trained += row.samples_per_s.has_value() ? 1 : 0;
    CHECK(row.speedup.has_value() == row.samples_per_s.has_value());
  }
  CHECK(verified == 4);
  CHECK(trained >= 3);
  CHECK(ended.rows.front().speedup == 1.0);
}
