#include <fstream>

#include <nlohmann/json.hpp>

#include <tandem/testing/temporary_directory.h>

#include "../launch/child_process.h"
#include "program.h"
#include "tandem_catch.h"

namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using tandem::bench::test::Ended;
using tandem::bench::test::run_for_results;
using tandem::bench::test::run_tandem;
using tandem::test::count_of;

/// Sizes with which a mode takes no time.
std::vector<std::string> tiny(std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "bench",
      "--workers=2",
      "--batch=4",
      "--steps=2",
      "--steps-per-turn=1",
      "--warm-up=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void check_workload(const std::string& workload, const std::string& device) {
  const auto ended = run_for_results(tiny(
      {"--workload", workload, "--device", device, "--strategy=single,dp"}));
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.rows.size() >= 3);
  for (const auto& row : ended.rows) {
    CHECK(row.workload == workload);
    CHECK(row.device == device);
    CHECK(row.step_ms.size() == 2);
    CHECK(row.verify_max_abs_diff.value() < 1e-9);
  }
}

void check_bench_refused(
    std::vector<std::string> more,
    const std::string& part) {
  more.insert(more.begin(), "bench");
  const auto ended = run_tandem(more);
  CHECK(ended.code == 2);
  CHECK(ended.out.empty());
  CHECK(count_of("\n", ended.err) == 1);
  CHECK_THAT(ended.err, ContainsSubstring(part));
}

json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  return json::parse(file);
}

} // namespace

TEST_CASE(
    "tandem bench times every mode in turns and does the same work in each",
    "[bench][BN-02][BN-04]") {
  const auto ended = run_for_results(tiny(
      {"--workload=mlp",
       "--device=cpu",
       "--strategy=single,dp,ddp,ddp-nosync"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  std::vector<std::string> names;
  // Each layer: forward and the weight's gradient; its input's, but for the
  // first one.
  const int64_t flops = 2 * 4 * (2 * 784 * 256 + 3 * 256 * 10);
  for (const auto& row : ended.rows) {
    names.push_back(row.name());
    CHECK(row.flops_per_step == flops);
    CHECK(row.steps_run == 5); // counted, warmed up, timed, untimed, timed
    CHECK(row.step_ms.size() == 2);
    CHECK(row.samples_per_s.value() > 0);
  }
  CHECK(
      names ==
      std::vector<std::string>{
          "mlp/single/1/4",
          "mlp/single/1/4/threads=2",
          "mlp/dp/2/4",
          "mlp/ddp/2/4",
          "mlp/ddp-nosync/2/4"});
  CHECK(ended.rows[3].peak_bytes.size() == 2);
  CHECK(ended.rows[3].backend == "gloo");
  CHECK(ended.rows[3].counters->collectives > 0);
  CHECK_FALSE(ended.rows[4].backend.has_value());
  CHECK_THAT(
      ended.out,
      ContainsSubstring("# mlp on cpu, 4 rows a step") &&
          ContainsSubstring("\nmode ") && ContainsSubstring("\nddp-nosync "));
  size_t at = 0;
  for (const auto* step : {"step 1/2", "step 2/2"}) {
    for (const auto& name : names) {
      at = ended.err.find("timed " + name + ": " + step, at);
      CHECK(at != std::string::npos);
    }
  }
}

TEST_CASE(
    "tandem bench measures what a hook saves and what it costs in accuracy",
    "[bench]") {
  const auto ended = run_for_results(tiny(
      {"--workload=mlp",
       "--device=cpu",
       "--strategy=ddp",
       "--hook=allreduce,fp16_compress,noop"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  REQUIRE(ended.rows.size() == 4);
  const auto& exact = ended.rows[1];
  CHECK(exact.name() == "mlp/ddp/2/4/hook=allreduce");
  CHECK(exact.verify_max_abs_diff.value() < 1e-9);
  CHECK(exact.hook_bytes == exact.gradient_bytes);
  const auto& half = ended.rows[2];
  CHECK(2 * half.hook_bytes.value() == half.gradient_bytes.value());
  CHECK(half.step_gradient_error.value() > 1e-6);
  CHECK(half.step_gradient_error.value() < 1e-3);
  const auto& none = ended.rows[3];
  CHECK(none.hook_bytes == 0);
  CHECK(none.step_gradient_error.value() > 0.1);
  CHECK_THAT(ended.out, ContainsSubstring("# ddp fp16_compress: sends "));
}

TEST_CASE("tandem bench refuses hooks that nothing is timed with", "[bench]") {
  check_bench_refused(
      {"--workload=mlp", "--device=cpu", "--strategy=dp", "--hook=noop"},
      "--hook: expected ddp among the strategies");
}

TEST_CASE(
    "tandem bench refuses to print numbers of a mode that is wrong",
    "[bench][BN-01]") {
  const auto ended = run_for_results(tiny(
      {"--workload=mlp",
       "--device=cpu",
       "--strategy=single,dp",
       "--refresh-policy=manual"}));
  CHECK(ended.code == 1);
  CHECK(ended.out.empty());
  CHECK(ended.rows.empty());
  CHECK_THAT(
      ended.err,
      ContainsSubstring("mlp/dp/2/4: expected the bare network's results") &&
          ContainsSubstring("step 2: 'layers.1.weight'") &&
          !ContainsSubstring("timed "));
}

TEST_CASE("tandem bench writes the documented schema", "[bench][BN-02]") {
  const tandem::testing::TemporaryDirectory dir;
  const auto file = dir.path() / "bench.json";
  const auto ended = run_tandem(tiny(
      {"--workload=mlp",
       "--device=sim",
       "--strategy=single,dp",
       "--json",
       file.string()}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto document = read_json(file);
  CHECK(document.at("schema") == "tandem-results/1");
  CHECK(document.at("command").at(1) == "bench");
  for (const auto* key :
       {"tandem", "torch", "cpu", "cores", "threads_per_worker"}) {
    CHECK(document.at("environment").contains(key));
  }
  const auto& single = document.at("rows").at(0);
  CHECK(single.at("name") == "mlp/single/1/4");
  CHECK(single.at("speedup") == 1.0);
  CHECK_FALSE(single.contains("backend"));
  CHECK_FALSE(single.contains("variant"));
  const auto& dp = document.at("rows").back();
  CHECK(dp.at("name") == "mlp/dp/2/4");
  CHECK(dp.at("device") == "sim");
  CHECK(dp.at("workers") == 2);
  CHECK(dp.at("batch") == 4);
  CHECK(dp.at("peak_bytes").size() == 2);
  CHECK(dp.at("counters").at("copies") > 0);
  for (const auto* key : {"p10", "p50", "p90", "p99", "min"}) {
    CHECK(dp.at("step_ms").at(key) > 0);
  }
  CHECK(dp.at("step_ms").at("count") == 2);
  CHECK(dp.at("step_ms").at("raw").size() == 2);
}

TEST_CASE("tandem bench runs the CNN on the CPU and on sim", "[bench]") {
  check_workload("cnn", "cpu");
  check_workload("cnn", "sim");
}

TEST_CASE("tandem bench runs the wide MLP", "[bench][slow]") {
  check_workload("mlp-wide", "sim");
}

TEST_CASE(
    "tandem bench runs the Transformer on the CPU and on sim",
    "[bench]") {
  check_workload("transformer", "cpu");
  check_workload("transformer", "sim");
}

TEST_CASE(
    "tandem bench times evaluation and refresh of many small tensors",
    "[bench][slow]") {
  const auto ended = run_for_results(
      tiny({"--workload=many-small-tensors", "--device=sim", "--strategy=dp"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  REQUIRE(ended.rows.size() == 4);
  const int64_t parameter_bytes = 10'510'051 * 4;
  CHECK(ended.rows[0].bytes_from_first_device.value() >= parameter_bytes);
  CHECK(ended.rows[2].name() == "many-small-tensors/dp/2/4/refresh");
  CHECK(ended.rows[2].bytes_from_first_device.value() >= parameter_bytes);
  CHECK(ended.rows[3].bytes_from_first_device == parameter_bytes);
  CHECK_THAT(
      ended.out,
      ContainsSubstring("times faster than one copy per tensor") &&
          ContainsSubstring("# dp evaluate: a step sends "));
}

TEST_CASE("tandem bench times dp with the loss in the replicas", "[bench]") {
  const auto ended = run_for_results(tiny(
      {"--workload=mlp",
       "--device=sim",
       "--strategy=dp,ddp",
       "--activity=train,mean-loss"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  REQUIRE(ended.rows.size() == 4);
  CHECK(ended.rows[1].name() == "mlp/dp/2/4/mean-loss");
  CHECK(ended.rows[1].flops_per_step == ended.rows[0].flops_per_step);
  CHECK_THAT(
      ended.out,
      ContainsSubstring("# dp mean-loss: the first device's peak"));
}

TEST_CASE(
    "tandem bench compares wrappers on one device with the bare module",
    "[bench]") {
  const auto ended = run_for_results(
      {"bench",
       "--workload=mlp",
       "--device=sim",
       "--strategy=bare,single,dp,ddp",
       "--workers=1",
       "--batch=4",
       "--steps=2"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.rows.size() == 4);
  CHECK(count_of("of the bare module's", ended.out) == 3);
}

TEST_CASE("tandem bench compares operators on sim with the CPU's", "[bench]") {
  const auto ended =
      run_for_results(tiny({"--workload=operators", "--device=sim"}));
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.rows.front().name() == "operators/bare/1/16/add/cpu");
  CHECK(ended.rows.back().name() == "operators/dp/1/4/cnn-step/sim");
  CHECK_THAT(
      ended.out,
      ContainsSubstring("\nbare view/sim ") &&
          ContainsSubstring("\ndp cnn-step/sim "));
}

TEST_CASE("tandem bench refuses what it cannot do in one line", "[bench]") {
  check_bench_refused({"--workload", "bert"}, "bert");
  check_bench_refused({"--strategy", "fsdp"}, "fsdp");
  check_bench_refused({"--activity", "rest"}, "rest");
  check_bench_refused({"--batch", "0"}, "--batch");
  check_bench_refused({"--steps", "0"}, "--steps");
  check_bench_refused({"--batch", "5", "--workers", "2"}, "got 5");
  check_bench_refused({"--workers", "0"}, "got 0");
  check_bench_refused(
      {"--strategy", "single", "--activity", "refresh"},
      "refresh");
}

TEST_CASE("tandem bench does not run below a launcher", "[bench]") {
  tandem::test::ChildProcess program(
      {"env", "RANK=0", "WORLD_SIZE=1", TANDEM_PROGRAM, "bench"});
  CHECK(program.wait() == 2);
  CHECK_THAT(program.err(), ContainsSubstring("launcher"));
}
