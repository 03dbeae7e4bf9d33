#include <tandem/comm/comm.h>

#include <chrono>
#include <string>
#include <thread>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>

#include "tandem_catch.h"
#include "unused_port.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::test::unused_port;
using tandem::testing::missing_parts;
using tandem::testing::RunProcessesOptions;
using tandem::testing::thrown_text;
using tandem::testing::try_processes;

namespace {

at::Tensor sum_over_ranks(int64_t rank) {
  auto tensor = torch::full({3}, rank + 1);
  comm::all_reduce(tensor);
  comm::barrier();
  return tensor;
}

TANDEM_RANK_FUNCTION(meets_twice) {
  const auto first = comm::init_process_group();
  const auto again =
      thrown_text<tandem::ConfigError>([] { comm::init_process_group(); });
  const auto sum = sum_over_ranks(process.rank());
  comm::destroy_process_group();
  comm::init_process_group();
  return {
      {{"sum", sum}, {"again", sum_over_ranks(process.rank())}},
      again.value_or("nothing thrown")};
}

TANDEM_RANK_FUNCTION(meets_shortly) {
  comm::init_process_group(comm::ProcessGroupOptions().startup_timeout(
      std::chrono::milliseconds(std::stoll(process.argument()))));
  return {};
}

TANDEM_RANK_FUNCTION(meets_late) {
  if (process.rank() == 1) {
    std::this_thread::sleep_for(2s); // what the case is about
  }
  comm::init_process_group();
  return {{{"sum", sum_over_ranks(process.rank())}}, ""};
}

} // namespace

TEST_CASE(
    "processes meet in the launcher's store, and again after destroy",
    "[comm][processes]") {
  for (const auto& result : tandem::testing::run_processes(2, "meets_twice")) {
    CHECK(at::equal(result.tensors.at("sum"), torch::full({3}, 3)));
    CHECK(at::equal(result.tensors.at("again"), torch::full({3}, 3)));
    CHECK(missing_parts(result.text, {"second init_process_group"}).empty());
  }
}

TEST_CASE("processes meet in rank 0's store", "[comm][processes]") {
  const auto results = tandem::testing::run_processes(
      3,
      "meets_twice",
      RunProcessesOptions().environment(
          {{"TORCHELASTIC_USE_AGENT_STORE", "False"},
           {"MASTER_PORT", unused_port()}}));
  for (const auto& result : results) {
    CHECK(at::equal(result.tensors.at("again"), torch::full({3}, 6)));
  }
}

TEST_CASE("a process that starts late is waited for", "[comm][ENV-03]") {
  for (const auto& result : tandem::testing::run_processes(2, "meets_late")) {
    CHECK(at::equal(result.tensors.at("sum"), torch::full({3}, 3)));
  }
}

TEST_CASE("a process that never starts is named", "[comm][ENV-03]") {
  const auto outcomes = try_processes(
      1,
      "meets_shortly",
      RunProcessesOptions().argument("500").environment(
          {{"WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}}));
  CHECK(
      missing_parts(outcomes[0].error, {"[comm rank 0/2]", "500 ms", "rank 1"})
          .empty());
}

TEST_CASE("a host that cannot be resolved gives one line", "[comm][ENV-01]") {
  const auto outcomes = try_processes(
      2,
      "meets_shortly",
      RunProcessesOptions().argument("500").environment(
          {{"MASTER_ADDR", "no-such-host.invalid"}}));
  for (const auto& outcome : outcomes) {
    CHECK(missing_parts(
              outcome.error,
              {"MASTER_ADDR: expected", "'no-such-host.invalid'"})
              .empty());
    CHECK(outcome.error.find('\n') == std::string::npos);
  }
}

TEST_CASE("a store that cannot be reached gives one line", "[comm][ENV-03]") {
  const auto port = unused_port();
  const auto outcomes = try_processes(
      1,
      "meets_shortly",
      RunProcessesOptions().argument("500").environment(
          {{"WORLD_SIZE", "2"},
           {"LOCAL_WORLD_SIZE", "2"},
           {"RANK", "1"},
           {"LOCAL_RANK", "1"},
           {"TORCHELASTIC_USE_AGENT_STORE", "False"},
           {"MASTER_PORT", port}}));
  CHECK(missing_parts(
            outcomes[0].error,
            {"[comm rank 1/2] rank 0", "127.0.0.1", port, "500 ms"})
            .empty());
  CHECK(outcomes[0].error.find('\n') == std::string::npos);
}

TEST_CASE("a bad variable ends a process in one line", "[comm][ENV-01]") {
  const auto outcomes = try_processes(
      1,
      "meets_shortly",
      RunProcessesOptions().argument("500").environment({{"RANK", "+1"}}));
  CHECK(outcomes[0].status.code == 1);
  CHECK(missing_parts(outcomes[0].error, {"RANK: expected", "'+1'"}).empty());
}

TEST_CASE("a world of one needs no store and no second", "[comm][processes]") {
  const auto results = tandem::testing::run_processes(
      1,
      "meets_twice",
      RunProcessesOptions().environment(
          {{"TORCHELASTIC_USE_AGENT_STORE", "False"},
           {"MASTER_ADDR", "no-such-host.invalid"},
           {"MASTER_PORT", "1"}}));
  CHECK(at::equal(results[0].tensors.at("sum"), torch::full({3}, 1)));
}
