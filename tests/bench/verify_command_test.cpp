#include "program.h"
#include "tandem_catch.h"

using Catch::Matchers::ContainsSubstring;
using tandem::bench::test::run_for_results;
using tandem::bench::test::run_tandem;

TEST_CASE(
    "tandem verify finds dp and ddp equal to single, and says by how much",
    "[bench]") {
  const auto ended = run_for_results({"verify", "--model", "mlp"});
  CHECK(ended.code == 0);
  REQUIRE(ended.rows.size() == 4);
  std::vector<std::string> names;
  for (const auto& row : ended.rows) {
    names.push_back(row.name());
    CHECK(row.verify_max_abs_diff.value() < 1e-9);
  }
  CHECK(
      names ==
      std::vector<std::string>{
          "mlp/dp/2/12",
          "probe/dp/2/12",
          "mlp/ddp/2/12",
          "probe/ddp/2/12"});
  CHECK_THAT(
      ended.out,
      ContainsSubstring("verify mlp/ddp/2/12: largest difference"));
}

TEST_CASE(
    "tandem verify fails and names what differs when replicas are not "
    "refreshed",
    "[bench]") {
  const auto ended = run_for_results(
      {"verify", "--strategy", "dp", "--refresh-policy", "manual"});
  CHECK(ended.code == 1);
  CHECK_THAT(ended.out, ContainsSubstring("FAILED"));
  CHECK_THAT(
      ended.err,
      ContainsSubstring("verify cnn/dp/2/12: first to differ: step 2: output"));
  CHECK(ended.rows.at(0).verify_max_abs_diff.value() > 1e-9);
}

TEST_CASE(
    "tandem verify fails and names the rank when buffers are not broadcast",
    "[bench]") {
  const auto ended =
      run_tandem({"verify", "--strategy", "dp,ddp", "--no-broadcast-buffers"});
  CHECK(ended.code == 1);
  CHECK_THAT(
      ended.out,
      ContainsSubstring("verify probe/dp/2/12") && ContainsSubstring("ok"));
  CHECK_THAT(
      ended.err,
      ContainsSubstring(
          "[rank 1] verify probe/ddp/2/12: first to differ: step 1: "
          "output"));
}

TEST_CASE("tandem verify takes more workers than two", "[bench]") {
  const auto ended =
      run_for_results({"verify", "--model", "mlp", "--workers", "3"});
  CHECK(ended.code == 0);
  CHECK(ended.rows.at(0).name() == "mlp/dp/3/18");
}
