#include "../launch/child_process.h"
#include "program.h"
#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using tandem::bench::test::kRankVariables;
using tandem::bench::test::run_for_results;
using tandem::bench::test::run_tandem;
using tandem::test::ChildProcess;

std::vector<std::string> train_on(
    const std::string& device,
    const std::string& strategy) {
  return {
      "train",
      "--model=mlp",
      "--data=synthetic",
      "--steps=3",
      "--batch=24",
      "--device",
      device,
      "--strategy",
      strategy};
}

} // namespace

TEST_CASE("tandem train on sim learns what it learns on the CPU", "[bench]") {
  for (const auto* strategy : {"single", "dp", "ddp"}) {
    const auto cpu = run_for_results(train_on("cpu", strategy));
    const auto sim = run_for_results(train_on("sim", strategy));
    INFO(sim.err);
    REQUIRE(sim.code == 0);
    const auto& row = sim.rows.at(0);
    CHECK(row.device == "sim");
    CHECK(row.workers == cpu.rows.at(0).workers);
    CHECK(row.losses.back().loss == cpu.rows.at(0).losses.back().loss);
    CHECK(row.test_loss == cpu.rows.at(0).test_loss);
    CHECK(row.peak_bytes.size() == static_cast<size_t>(row.workers));
    CHECK(row.peak_bytes.back() > 0);
    if (row.strategy == "ddp") {
      CHECK(row.backend == "sim");
    }
  }
}

TEST_CASE("tandem verify finds dp and ddp equal to single on sim", "[bench]") {
  const auto ended =
      run_for_results({"verify", "--model", "mlp", "--device", "sim"});
  INFO(ended.err);
  CHECK(ended.code == 0);
  REQUIRE(ended.rows.size() == 4);
  for (const auto& row : ended.rows) {
    CHECK(row.device == "sim");
    CHECK(row.verify_max_abs_diff.value() < 1e-9);
  }
}

TEST_CASE("there are as many sim devices as the variable says", "[bench]") {
  const auto run = [](const std::string& devices,
                      std::vector<std::string> command) {
    command.insert(
        command.begin(),
        {"env", "TANDEM_SIM_DEVICES=" + devices, TANDEM_PROGRAM});
    ChildProcess program(command, kRankVariables);
    const int code = program.wait();
    return std::make_pair(code, program.out() + program.err());
  };
  for (const auto* strategy : {"dp", "ddp"}) {
    const auto [code, text] =
        run("1",
            {"verify", "--device=sim", "--workers=2", "--strategy", strategy});
    CHECK(code == 2);
    CHECK_THAT(
        text,
        ContainsSubstring("--workers: expected at most 1") &&
            ContainsSubstring("got 2"));
  }
  CHECK_THAT(
      run("none", {"verify", "--device=sim", "--strategy=dp"}).second,
      ContainsSubstring("TANDEM_SIM_DEVICES"));
  // Without --workers one for each.
  CHECK_THAT(
      run("3", {"verify", "--model=mlp", "--device=sim", "--strategy=dp"})
          .second,
      ContainsSubstring("verify mlp/dp/3/18"));
  CHECK_THAT(
      run("3", {"doctor"}).second,
      ContainsSubstring("3 simulated devices"));
}
