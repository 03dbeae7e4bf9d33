#include <csignal>
#include <fstream>
#include <sstream>

#include "../launch/child_process.h"
#include "program.h"
#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using tandem::bench::test::Ended;
using tandem::bench::test::kRankVariables;
using tandem::bench::test::run_for_results;
using tandem::bench::test::run_tandem;
using tandem::test::ChildProcess;
using tandem::test::count_of;

Ended train(const std::string& strategy, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{
      "train",
      "--model",
      "mlp",
      "--data",
      "synthetic",
      "--steps",
      "12",
      "--batch",
      "24",
      "--strategy",
      strategy};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_for_results(std::move(arguments));
}

void check_refused(
    const std::vector<std::string>& arguments,
    const std::string& part) {
  const auto ended = run_tandem(arguments);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(count_of("\n", ended.err) == 1);
  CHECK_THAT(ended.err, ContainsSubstring(part));
}

/// The child of `parent` that is this rank.
std::optional<pid_t> rank_process(pid_t parent, int rank) {
  for (const pid_t child : tandem::test::children_of(parent)) {
    std::ifstream file("/proc/" + std::to_string(child) + "/environ");
    std::stringstream text;
    text << '\0' << file.rdbuf();
    const std::string entry = "RANK=" + std::to_string(rank);
    if (text.str().find('\0' + entry + '\0') != std::string::npos) {
      return child;
    }
  }
  return std::nullopt;
}

} // namespace

TEST_CASE(
    "tandem train gives the same losses with every strategy and writes them",
    "[bench]") {
  const auto single = train("single").rows.at(0);
  CHECK(single.name() == "mlp/single/1/24");
  CHECK(single.losses.size() == 3); // steps 1, 10, 12
  for (const auto* strategy : {"dp", "ddp"}) {
    const auto ended = train(strategy);
    CHECK(ended.code == 0);
    const auto& row = ended.rows.at(0);
    CHECK(row.workers == 2);
    CHECK(row.steps_run == 12);
    CHECK(row.step_ms.size() == 12);
    CHECK(row.samples_per_s.value() > 0);
    CHECK(row.peak_bytes.size() == (std::string(strategy) == "ddp" ? 2U : 1U));
    CHECK(std::abs(*row.test_loss - *single.test_loss) < 1e-3);
    REQUIRE(row.losses.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(row.losses[i].step == single.losses[i].step);
      CHECK(std::abs(row.losses[i].loss - single.losses[i].loss) < 1e-4);
    }
  }
}

TEST_CASE("tandem train learns", "[bench]") {
  const auto ended = run_for_results(
      {"train", "--model", "mlp", "--data", "synthetic", "--epochs", "1"});
  CHECK(ended.rows.at(0).test_accuracy.value() > 0.8);
  CHECK_THAT(ended.out, ContainsSubstring("test accuracy"));
  CHECK_THAT(ended.err, ContainsSubstring("epoch 1  step 94/94"));
}

TEST_CASE("tandem train joins ranks that a launcher started", "[bench]") {
  const auto ended = run_tandem(
      {"launch",
       "-n",
       "2",
       TANDEM_PROGRAM,
       "train",
       "--model=mlp",
       "--data=synthetic",
       "--steps=2",
       "--batch=24",
       "--strategy=ddp"});
  CHECK(ended.code == 0);
  CHECK_THAT(ended.out, ContainsSubstring("[rank 0] mlp/ddp/2/24: 2 steps"));
  CHECK(count_of("\n", ended.out) == 1);
}

TEST_CASE("tandem train refuses what it cannot do in one line", "[bench]") {
  check_refused({"train", "--strategy", "fsdp"}, "fsdp");
  check_refused({"train", "--model", "probe"}, "probe");
  check_refused({"train", "--workers", "2"}, "expected 1 for the strategy");
  check_refused({"train", "--workers", "0"}, "got 0");
  check_refused({"train", "--threads", "0"}, "--threads");
  check_refused({"train", "--batch", "0"}, "--batch");
  check_refused({"train", "--steps", "0"}, "--steps");
  check_refused({"train", "--data-dir", "/no/such"}, "/no/such");
}

TEST_CASE(
    "a rank that is killed ends the training, and the launcher names it",
    "[bench]") {
  ChildProcess training(
      {TANDEM_PROGRAM,
       "train",
       "--strategy=ddp",
       "--model=mlp",
       "--data=synthetic",
       "--epochs=1000"},
      kRankVariables);
  training.read_until(
      [&] { return training.err().find("  loss ") != std::string::npos; });
  const auto victim = rank_process(training.pid(), 1);
  REQUIRE(victim.has_value());
  ::kill(*victim, SIGKILL);
  CHECK(training.wait(std::chrono::seconds(10)) == 137);
  CHECK_THAT(
      training.err(),
      ContainsSubstring("rank 1") && ContainsSubstring("SIGKILL"));
}

TEST_CASE(
    "the CNN reaches 87 % after one epoch with every strategy",
    "[bench][slow]") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    TANDEM_SKIP("the package dataset-fashion-mnist is not installed");
  }
  for (const auto* strategy : {"single", "dp", "ddp"}) {
    const auto ended = run_for_results({"train", "--strategy", strategy});
    INFO(ended.err);
    REQUIRE(ended.rows.size() == 1);
    CHECK(ended.rows[0].test_accuracy.value() >= 0.87);
  }
}
