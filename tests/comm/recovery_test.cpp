// What a process can do after a failure, and with a store that is gone.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <torch/torch.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/comm/comm.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>

#include "tandem_catch.h"
#include "unused_port.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::run_processes;
using tandem::testing::RunProcessesOptions;
using tandem::testing::thrown_text;
using tandem::testing::try_processes;

namespace {

double sum_over_ranks(comm::ProcessGroup& group) {
  auto tensor = torch::ones({1000}) * static_cast<double>(group.rank() + 1);
  group.all_reduce(tensor);
  return tensor.mean().item<double>();
}

TANDEM_RANK_FUNCTION(groups_after_a_failure) {
  const auto options = comm::ProcessGroupOptions().timeout(500ms);
  const auto failed = comm::init_process_group(options);
  const auto store = failed->store();
  process.doing("a collective that rank 1 does not come to");
  if (process.rank() == 1) {
    store->wait({"over"});
  }
  const auto text =
      thrown_text<tandem::TimeoutError>([&] { sum_over_ranks(*failed); });
  if (process.rank() == 0) {
    store->set("over", "1");
  }
  process.doing("a new group");
  comm::destroy_process_group();
  const auto next =
      comm::init_process_group(comm::ProcessGroupOptions().timeout(20s));
  return {
      {{"sum", torch::tensor(sum_over_ranks(*next))}},
      text.value_or("nothing thrown")};
}

} // namespace

TEST_CASE(
    "a process makes a new group after an error",
    "[comm][processes][FT-06]") {
  const auto results = run_processes(2, "groups_after_a_failure");
  CHECK(missing_parts(results[0].text, {"no answer from rank 1"}).empty());
  CHECK(missing_parts(results[1].text, {"others had given up"}).empty());
  for (const auto& result : results) {
    CHECK(result.tensors.at("sum").item<double>() == 3);
  }
}

namespace {

TANDEM_RANK_FUNCTION(host_of_the_store_stops) {
  const auto group = comm::init_process_group(
      comm::ProcessGroupOptions().timeout(2s).init_method(process.argument()));
  sum_over_ranks(*group);
  if (process.rank() == 0) {
    group->store()->set("pid", std::to_string(::getpid()));
    group->barrier();
    ::raise(SIGSTOP);
    return {};
  }
  const auto host =
      static_cast<pid_t>(std::stoll(group->store()->get_to_str("pid")));
  group->barrier();
  const auto begin = std::chrono::steady_clock::now();
  const auto text =
      thrown_text<tandem::TimeoutError>([&] { sum_over_ranks(*group); });
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - begin;
  ::kill(host, SIGKILL);
  return {
      {{"seconds", torch::tensor(taken.count())}},
      text.value_or("nothing thrown")};
}

} // namespace

TEST_CASE(
    "a store whose host has stopped delays no error",
    "[comm][processes][FT-02]") {
  const auto outcomes = try_processes(
      2,
      "host_of_the_store_stops",
      RunProcessesOptions().argument(
          fmt::format("tcp://127.0.0.1:{}", tandem::test::unused_port())));
  CAPTURE(outcomes[1].error);
  REQUIRE(outcomes[1].success());
  const auto& result = *outcomes[1].result;
  CHECK(missing_parts(result.text, {"the store", "rank 0"}).empty());
  CHECK(result.tensors.at("seconds").item<double>() < 4);
}
