#include <tandem/train/results.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include <tandem/core/errors.h>
#include <tandem/testing/temporary_directory.h>

#include "checks.h"
#include "data_files.h"
#include "tandem_catch.h"

namespace {

using nlohmann::json;
using tandem::ConfigError;
using tandem::testing::TemporaryDirectory;
using tandem::train::read_results;
using tandem::train::ResultRow;
using tandem::train::Results;
using tandem::train::results_from_json;
using tandem::train::to_json;
using tandem::train::write_results;
using tandem::train::test::error_of;

Results full_results() {
  Results results;
  results.command = {"tandem", "train"};
  results.environment = {"0.1", "2.15.0", "2.30.7", "a cpu", 2, 1};
  ResultRow row;
  row.workload = "cnn";
  row.strategy = "ddp";
  row.device = "cpu";
  row.backend = "gloo";
  row.workers = 2;
  row.batch = 64;
  row.step_ms = {3, 1, 2};
  row.samples_per_s = 3000.5;
  row.speedup = 1.5;
  row.verify_max_abs_diff = 1e-16;
  row.flops_per_step = 480;
  row.bytes_from_first_device = 0;
  row.test_loss = 0.3;
  row.test_accuracy = 0.88;
  row.losses = {{1, 2.3}, {10, 1.5}};
  row.peak_bytes = {100, 200};
  row.steps_run = 3;
  row.counters = tandem::Counters{3, 4000, 5, 6};
  results.rows = {row};
  return results;
}

} // namespace

TEST_CASE("results are written by the documented schema", "[train]") {
  const auto document = json::parse(to_json(full_results()));
  CHECK(document.at("schema") == "tandem-results/1");
  CHECK(document.at("command") == json({"tandem", "train"}));
  const auto& environment = document.at("environment");
  CHECK(environment.at("nccl") == "2.30.7");
  CHECK(environment.at("cores") == 2);
  const auto& row = document.at("rows").at(0);
  CHECK(row.at("name") == "cnn/ddp/2/64");
  CHECK(row.at("step_ms").at("p50") == 2);
  CHECK(row.at("step_ms").at("min") == 1);
  CHECK(row.at("step_ms").at("count") == 3);
  CHECK(row.at("step_ms").at("raw") == json({3.0, 1.0, 2.0}));
  CHECK(row.at("peak_bytes") == json({100, 200}));
  CHECK(row.at("verify_max_abs_diff") == 1e-16);
  CHECK(row.at("flops_per_step") == 480);
  CHECK(row.at("bytes_from_first_device") == 0);
  CHECK(row.at("counters").at("bytes_moved") == 4000);
}

TEST_CASE("what was not measured is absent from results", "[train]") {
  Results results;
  results.rows.emplace_back();
  const auto document = json::parse(to_json(results));
  CHECK_FALSE(document.at("environment").contains("nccl"));
  const auto& row = document.at("rows").at(0);
  for (const auto* key :
       {"backend",
        "step_ms",
        "samples_per_s",
        "speedup",
        "verify_max_abs_diff",
        "test_loss",
        "test_accuracy",
        "losses",
        "peak_bytes",
        "steps_run",
        "counters"}) {
    INFO(key);
    CHECK_FALSE(row.contains(key));
  }
}

TEST_CASE("results come back from their text as they were", "[train]") {
  for (const auto& results : {full_results(), Results{{}, {}, {ResultRow()}}}) {
    const auto text = to_json(results);
    CHECK(to_json(results_from_json(text, "text")) == text);
  }
}

TEST_CASE("a row's name has its variant and several threads", "[train]") {
  auto row = full_results().rows[0];
  row.threads_per_worker = 2;
  CHECK(row.name() == "cnn/ddp/2/64/threads=2");
  row.variant = "evaluate";
  CHECK(row.name() == "cnn/ddp/2/64/evaluate/threads=2");
  Results results;
  results.rows = {row};
  CHECK(
      results_from_json(to_json(results), "text").rows[0].variant ==
      "evaluate");
}

TEST_CASE(
    "a results file is replaced in one step and leaves nothing beside it",
    "[train]") {
  const TemporaryDirectory dir;
  const auto path = dir.path() / "results.json";
  write_results(path, Results());
  write_results(path, full_results());
  CHECK(to_json(read_results(path)) == to_json(full_results()));
  const std::filesystem::directory_iterator entries(dir.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

TEST_CASE("a results file that cannot be written or read is named", "[train]") {
  const TemporaryDirectory dir;
  const auto absent = dir.path() / "absent";
  const auto write = error_of<ConfigError>(
      [&] { write_results(absent / "results.json", Results()); });
  CHECK(write.find((absent / "results.json").string()) != std::string::npos);
  CHECK(error_of<ConfigError>([&] {
          read_results(absent);
        }).find(absent.string()) != std::string::npos);
  for (const auto* text : {"", "{", "{}", R"({"schema": "other/1"})"}) {
    CHECK(error_of<ConfigError>([&] {
            results_from_json(text, "origin.json");
          }).find("origin.json") != std::string::npos);
  }
  // A folder in the way: nothing is left beside it.
  std::filesystem::create_directory(dir.path() / "taken");
  CHECK_THROWS_AS(write_results(dir.path() / "taken", Results()), ConfigError);
  const std::filesystem::directory_iterator entries(dir.path());
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}
