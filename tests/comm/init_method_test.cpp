#include <tandem/comm/comm.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"
#include "unused_port.h"

namespace comm = tandem::comm;
using tandem::test::unused_port;
using tandem::testing::missing_parts;
using tandem::testing::run_processes;
using tandem::testing::RunProcessesOptions;
using tandem::testing::TemporaryDirectory;
using tandem::testing::thrown_text;

namespace {

/// What torchrun would have set does not help these ranks.
void forget_variables() {
  for (const auto* name :
       {"RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
        "TORCHELASTIC_USE_AGENT_STORE"}) {
    ::unsetenv(name);
  }
}

at::Tensor summed_ranks() {
  auto sum = torch::full({2}, comm::rank() + 1);
  comm::all_reduce(sum);
  comm::barrier();
  return sum;
}

TANDEM_RANK_FUNCTION(meets_at_url) {
  forget_variables();
  comm::init_process_group(comm::ProcessGroupOptions().init_method(
      process.argument() + "?rank=" + std::to_string(process.rank()) +
      "&world_size=" + std::to_string(process.world_size())));
  return {{{"sum", summed_ranks()}}, ""};
}

TANDEM_RANK_FUNCTION(meets_by_options) {
  forget_variables();
  comm::init_process_group(comm::ProcessGroupOptions()
                               .init_method(process.argument())
                               .rank(process.rank())
                               .world_size(process.world_size())
                               .backend("gloo"));
  return {
      {{"sum", summed_ranks()}},
      comm::default_group()->backend_name(at::kCPU)};
}

TANDEM_RANK_FUNCTION(meets_in_own_store) {
  forget_variables();
  const auto world_size = process.world_size();
  comm::init_process_group(
      c10::make_intrusive<c10d::FileStore>(
          process.argument(),
          static_cast<int>(world_size)),
      process.rank(),
      world_size);
  return {{{"sum", summed_ranks()}}, ""};
}

void check_sums(
    int64_t world_size,
    const std::string& function,
    const std::string& argument) {
  CAPTURE(world_size, function, argument);
  const auto results = run_processes(
      world_size,
      function,
      RunProcessesOptions().argument(argument));
  const auto expected =
      torch::full({2}, world_size * (world_size + 1) / 2, at::kLong);
  for (const auto& result : results) {
    CHECK(at::equal(result.tensors.at("sum"), expected));
  }
}

std::string text_of(const comm::ProcessGroupOptions& options) {
  return thrown_text<tandem::ConfigError>(
             [&] { comm::init_process_group(options); })
      .value_or("nothing thrown");
}

} // namespace

TEST_CASE("processes meet at a TCP URL", "[comm][processes]") {
  check_sums(2, "meets_at_url", "tcp://127.0.0.1:" + unused_port());
  check_sums(3, "meets_by_options", "tcp://localhost:" + unused_port());
}

TEST_CASE("processes meet in a file", "[comm][processes]") {
  const TemporaryDirectory directory;
  const auto path = directory.path().string();
  check_sums(3, "meets_at_url", "file://" + path + "/url");
  check_sums(2, "meets_by_options", "file://" + path + "/options");
}

TEST_CASE("processes meet in a store of their own", "[comm][processes]") {
  const TemporaryDirectory directory;
  check_sums(2, "meets_in_own_store", directory.path().string() + "/store");
}

TEST_CASE("a world of one takes any store and any URL", "[comm]") {
  comm::init_process_group(c10::make_intrusive<c10d::HashStore>(), 0, 1);
  CHECK(comm::world_size() == 1);
  comm::destroy_process_group();
  comm::init_process_group(comm::ProcessGroupOptions().init_method(
      "tcp://no-such-host.invalid:1?rank=0&world_size=1"));
  CHECK(comm::world_size() == 1);
  comm::destroy_process_group();
}

TEST_CASE("a bad URL gives one line with the rule", "[comm][ENV-01]") {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "tcp://host:port"},
      {"127.0.0.1:29500", "tcp://host:port"},
      {"http://127.0.0.1:29500", "tcp://host:port"},
      {"tcp://127.0.0.1", "tcp://host:port"},
      {"tcp://:29500", "tcp://host:port"},
      {"tcp://127.0.0.1:", "1 to 65535"},
      {"tcp://127.0.0.1:0", "1 to 65535"},
      {"tcp://127.0.0.1:65536", "1 to 65535"},
      {"tcp://127.0.0.1:+1", "1 to 65535"},
      {"tcp://127.0.0.1:29500?rank=-1", "a rank"},
      {"tcp://127.0.0.1:29500?rank=1.0", "a rank"},
      {"tcp://127.0.0.1:29500?rank", "a rank"},
      {"tcp://127.0.0.1:29500?world_size=0", "a world_size"},
      {"tcp://127.0.0.1:29500?world=2", "rank=.. and world_size=.."},
      {"file://relative", "absolute path"},
      {"file:///folder/", "absolute path"},
      {"env://host", "nothing but a query"},
  };
  for (const auto& [url, rule] : bad) {
    CAPTURE(url);
    const auto text = text_of(comm::ProcessGroupOptions().init_method(url));
    CHECK(text.starts_with("init_method: expected "));
    CHECK(missing_parts(text, {rule, "got '" + url + "'"}).empty());
    CHECK(text.find('\n') == std::string::npos);
  }
}

TEST_CASE("options that contradict each other are named", "[comm][ENV-01]") {
  const auto options = comm::ProcessGroupOptions().init_method(
      "tcp://127.0.0.1:1?rank=1&world_size=2");
  auto other_rank = options;
  CHECK(
      missing_parts(text_of(other_rank.rank(0)), {"rank: expected", "0 and 1"})
          .empty());
  auto other_size = options;
  CHECK(missing_parts(
            text_of(other_size.world_size(3)),
            {"world_size: expected", "3 and 2"})
            .empty());
  const comm::ProcessGroupOptions none;
  auto too_large = none;
  CHECK(missing_parts(
            text_of(too_large.rank(2).world_size(2)),
            {"rank: expected", "world_size, which is 2", "got 2"})
            .empty());
  auto negative = none;
  CHECK(missing_parts(text_of(negative.rank(-1)), {"rank: expected", "-1"})
            .empty());
  auto backend = none;
  CHECK(missing_parts(
            text_of(backend.device(comm::DeviceChoice::kCPU).backend("mpi")),
            {"backend: expected 'gloo'", "got 'mpi'"})
            .empty());
}

TEST_CASE("a file that cannot be used is named", "[comm][ENV-01]") {
  const auto text = text_of(comm::ProcessGroupOptions()
                                .init_method("file:///no-such-folder/store")
                                .rank(0)
                                .world_size(2)
                                .startup_timeout(std::chrono::seconds(1)));
  CHECK(
      missing_parts(text, {"init_method", "'/no-such-folder/store'"}).empty());
  CHECK(text.find('\n') == std::string::npos);
}
