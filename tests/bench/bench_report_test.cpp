#include "harness/mode_row.h"
#include "report/bench_table.h"
#include "report/figures.h"
#include "report/operator_table.h"
#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using tandem::bench::Activity;
using tandem::bench::add_turn;
using tandem::bench::bench_table;
using tandem::bench::BenchRecipe;
using tandem::bench::figure_lines;
using tandem::bench::make_mode_row;
using tandem::bench::Mode;
using tandem::bench::ReadyReport;
using tandem::bench::set_samples_per_s;
using tandem::bench::set_speedups;
using tandem::bench::TimedStrategy;
using tandem::bench::TurnReport;
using tandem::train::ResultRow;

constexpr int64_t kMebibyte = 1 << 20;

ResultRow timed(
    const std::string& strategy,
    int64_t workers,
    double step_ms,
    const std::string& variant = "") {
  ResultRow row;
  row.workload = "cnn";
  row.strategy = strategy;
  row.variant = variant;
  row.device = "sim";
  row.workers = workers;
  row.batch = 64;
  row.step_ms = {step_ms, step_ms, step_ms};
  row.samples_per_s = 64 / step_ms * 1000;
  return row;
}

} // namespace

TEST_CASE("a row joins what the workers of a mode report", "[bench][BN-02]") {
  const Mode mode{TimedStrategy::kDDP, Activity::kTrain, 2, 1, ""};
  BenchRecipe recipe;
  recipe.batch = 64;
  auto row = make_mode_row(
      mode,
      recipe,
      {ReadyReport{{1e-16, ""}, -1, -1, 32, 100, "cpu", "gloo"},
       ReadyReport{{3e-16, ""}, -1, -1, 32, 100, "cpu", "gloo"}});
  add_turn(
      {TurnReport{{10, 20}, -1, {5}, 3, {3, 40, 2, 0}},
       TurnReport{{30, 40}, -1, {6}, 3, {3, 40, 2, 0}}},
      row);
  add_turn(
      {TurnReport{{25}, -1, {7}, 5, {5, 60, 4, 0}},
       TurnReport{{25}, -1, {6}, 5, {5, 60, 4, 0}}},
      row);
  set_samples_per_s(row);
  CHECK(row.name() == "cnn/ddp/2/64");
  CHECK(row.step_ms == std::vector<double>{20, 30, 25});
  CHECK(row.peak_bytes == std::vector<int64_t>{7, 6});
  CHECK(row.steps_run == 5);
  CHECK(row.counters->bytes_moved == 60);
  CHECK(row.verify_max_abs_diff == 3e-16);
  CHECK(row.flops_per_step == 200);
  CHECK(row.backend == "gloo");
  CHECK(row.samples_per_s == 64 / 0.025);
  CHECK_FALSE(row.bytes_from_first_device.has_value());
}

TEST_CASE("a mode without rows has no samples per second", "[bench]") {
  auto row = make_mode_row(
      {TimedStrategy::kDP, Activity::kRefresh, 2, 1, ""},
      {},
      {ReadyReport{}});
  add_turn({TurnReport{{1, 2}, 0, {1, 1}, 2, {}}}, row);
  set_samples_per_s(row);
  CHECK(row.name() == "cnn/dp/2/128/refresh");
  CHECK_FALSE(row.samples_per_s.has_value());
  CHECK(row.bytes_from_first_device == 0);
}

TEST_CASE(
    "a row with a lossy hook has an error in place of a proof",
    "[bench]") {
  ReadyReport first;
  first.step_gradient_error = 0.5;
  first.summed_gradient_error = 0.125;
  auto second = first;
  second.step_gradient_error = 0.75;
  auto row = make_mode_row(
      {TimedStrategy::kDDP, Activity::kTrain, 2, 1, "top_k"},
      {},
      {first, second});
  TurnReport turn{{1, 2}, -1, {1}, 2, {}};
  turn.gradient_bytes = 4 * kMebibyte;
  turn.hook_bytes = kMebibyte;
  add_turn({turn, turn}, row);
  CHECK(row.name() == "cnn/ddp/2/128/hook=top_k");
  CHECK_FALSE(row.verify_max_abs_diff.has_value());
  CHECK(
      figure_lines({row}, 10) ==
      "# ddp top_k: sends 1.000 of 4.000 MiB in a step, 75.0 % saved; "
      "gradients "
      "differ from the mean by 7.5e-01 of its norm, their sum over 10 steps by "
      "1.2e-01\n");
}

TEST_CASE("a hook's speed is compared with ddp's alone", "[bench]") {
  auto hooked = timed("ddp", 2, 10);
  hooked.hook = "noop";
  CHECK(
      figure_lines(
          {hooked, timed("ddp", 2, 20), timed("ddp-nosync", 2, 15)},
          10) ==
      "# ddp noop: 2.000 times as fast as ddp, turns from 2.000 (p10) to 2.000 "
      "(p90)\n"
      "# ddp: 0.750 times as fast as ddp-nosync, turns from 0.750 (p10) to "
      "0.750 (p90)\n");
}

TEST_CASE("the table's ratios are those of speeds in the run", "[bench]") {
  std::vector<ResultRow> rows{
      timed("single", 1, 40),
      timed("dp", 2, 25),
      timed("ddp-nosync", 2, 20),
      timed("dp", 2, 5, "evaluate")};
  rows[1].peak_bytes = {3 * kMebibyte, 2 * kMebibyte};
  set_speedups(rows, 2);
  CHECK(rows[1].speedup == 1.6);
  CHECK_FALSE(rows[3].speedup.has_value());
  const auto table = bench_table(rows, 2);
  CHECK_THAT(
      table,
      ContainsSubstring(
          "dp                         2       1     25.00    25.00    25.00    "
          "25.00     3       2560   1.60   0.80  3.0 2.0\n") &&
          ContainsSubstring("dp evaluate") &&
          ContainsSubstring("    12800      -      -  \n"));
}

TEST_CASE("more threads than cores have no ratio", "[bench]") {
  std::vector<ResultRow> rows{timed("single", 1, 40), timed("dp", 2, 25)};
  set_speedups(rows, 1);
  CHECK_FALSE(rows[1].speedup.has_value());
  CHECK_THAT(
      bench_table(rows, 1),
      ContainsSubstring("     2560      -      -"));
}

TEST_CASE("figures name both terms of what they compare", "[bench]") {
  auto dp = timed("dp", 2, 25);
  dp.peak_bytes = {3 * kMebibyte, 2 * kMebibyte};
  dp.bytes_from_first_device = 1234;
  CHECK(
      figure_lines(
          {timed("bare", 1, 40),
           timed("single", 1, 41),
           dp,
           timed("dp", 2, 2, "refresh"),
           timed("dp", 2, 20, "copy-each")},
          10) ==
      "# single on one device: 41.000 ms a step, +2.50 % of the bare module's "
      "40.000 ms\n"
      "# dp: a step sends 1234 bytes from the first device to the others\n"
      "# dp: the first device's peak is 3.0 MiB, 1.50 times the 2.0 MiB of the "
      "others'\n"
      "# refresh: 2.00 ms, 10.0 times faster than one copy per tensor, 20.00 "
      "ms\n");
}

TEST_CASE(
    "the operators' table compares devices, and wrappers with none",
    "[bench]") {
  auto cpu = timed("bare", 1, 0.001, "add/cpu");
  cpu.device = "cpu";
  CHECK(
      tandem::bench::operator_table(
          {cpu,
           timed("bare", 1, 0.0025, "add/sim"),
           timed("dp", 1, 0.005, "add/sim")}) ==
      "median of                     us  against                       us    "
      "more us   more %\n"
      "bare add/sim               2.500  bare add/cpu               1.000     "
      "+1.500  +150.00\n"
      "dp add/sim                 5.000  bare add/sim               2.500     "
      "+2.500  +100.00\n");
}
