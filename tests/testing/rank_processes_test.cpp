#include <tandem/testing/rank_processes.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <unistd.h>

#include <torch/torch.h>

#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::run_processes;
using tandem::testing::RunProcessesOptions;
using tandem::testing::thrown_text;
using tandem::testing::try_processes;

namespace {

TANDEM_RANK_FUNCTION(returns_everything) {
  return {
      {{"rank", torch::full({2, 3}, process.rank(), at::kBFloat16)},
       {"long", torch::arange(100000)},
       {"empty", torch::empty({0})}},
      process.argument() + ", " + std::getenv("TANDEM_TEST_VARIABLE")};
}

TANDEM_RANK_FUNCTION(ends_in_its_own_way) {
  process.doing("its end");
  switch (process.rank()) {
    case 0:
      return {};
    case 1:
      throw tandem::ConfigError("thrown");
    case 2:
      std::_Exit(7);
    default:
      std::raise(SIGABRT);
  }
  return {};
}

[[noreturn]] void hang() {
  for (;;) {
    ::pause();
  }
}

TANDEM_RANK_FUNCTION(hangs_on_rank_1) {
  if (process.rank() == 1) {
    process.doing("hanging");
    hang();
  }
  return {};
}

/// Starts a process; writes its id, and the rank's own, to a file.
void leave_child(const tandem::testing::RankProcess& process) {
  const std::string file =
      process.argument() + "/" + std::to_string(process.rank());
  const auto command = "sleep 600 & echo $! > '" + file + "'; echo " +
      std::to_string(::getpid()) + " >> '" + file + "'";
  if (std::system(command.c_str()) != 0) {
    throw tandem::Error("no shell");
  }
}

TANDEM_RANK_FUNCTION(leaves_a_child) {
  leave_child(process);
  return {};
}

TANDEM_RANK_FUNCTION(leaves_a_child_and_hangs) {
  leave_child(process);
  hang();
}

/// A test binary that is itself killed while its ranks run.
TANDEM_RANK_FUNCTION(runs_processes_itself) {
  process.doing("running");
  std::thread announcer([&] {
    for (int rank = 0; rank < 2; ++rank) {
      while (!std::ifstream(process.argument() + "/" + std::to_string(rank))) {
        std::this_thread::sleep_for(10ms);
      }
    }
    process.doing("ranks run");
  });
  try_processes(
      2,
      "leaves_a_child_and_hangs",
      RunProcessesOptions().argument(process.argument()));
  announcer.join();
  return {};
}

bool is_running(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  std::string id;
  std::string name;
  std::string state;
  stat >> id >> name >> state;
  return !state.empty() && state != "Z" && state != "X";
}

/// Whether the processes whose ids the files hold end within a few seconds.
std::vector<std::string> still_running(
    const std::filesystem::path& directory,
    const std::vector<std::string>& files) {
  std::vector<std::string> running;
  for (const auto& file : files) {
    std::ifstream pids(directory / file);
    for (std::string pid; pids >> pid;) {
      const auto deadline = std::chrono::steady_clock::now() + 5s;
      while (is_running(pid) && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(5ms);
      }
      if (is_running(pid)) {
        running.push_back(pid);
      }
    }
  }
  return running;
}

} // namespace

TEST_CASE("run_processes brings tensors and text back", "[testing]") {
  const auto results = run_processes(
      3,
      "returns_everything",
      RunProcessesOptions()
          .argument("an argument: with\nspecials")
          .environment({{"TANDEM_TEST_VARIABLE", "a value"}}));
  REQUIRE(results.size() == 3);
  for (int64_t rank = 0; rank < 3; ++rank) {
    const auto& result = results[rank];
    CHECK(result.text == "an argument: with\nspecials, a value");
    CHECK(at::equal(
        result.tensors.at("rank"),
        torch::full({2, 3}, rank, at::kBFloat16)));
    CHECK(at::equal(result.tensors.at("long"), torch::arange(100000)));
    CHECK(result.tensors.at("empty").numel() == 0);
  }
}

TEST_CASE("try_processes tells how each rank ended", "[testing]") {
  const auto outcomes = try_processes(4, "ends_in_its_own_way");
  CHECK(outcomes[0].success());
  CHECK(outcomes[1].status.code == 1);
  CHECK(outcomes[1].error == "thrown");
  CHECK(outcomes[2].status.code == 7);
  CHECK(outcomes[2].error.empty());
  CHECK(outcomes[3].status.signal == SIGABRT);
  for (const auto& outcome : outcomes) {
    CHECK(outcome.last_doing == "its end");
  }
}

TEST_CASE("run_processes names the ranks that failed", "[testing]") {
  const auto text = thrown_text<tandem::Error>(
      [] { run_processes(4, "ends_in_its_own_way"); });
  REQUIRE(text.has_value());
  CHECK(missing_parts(
            *text,
            {"rank 1 exited with 1",
             "thrown",
             "rank 2 exited with 7",
             "rank 3 was ended by signal 6",
             "its end"})
            .empty());
  CHECK(text->find("rank 0") == std::string::npos);
}

TEST_CASE("run_processes ends all at the deadline", "[testing]") {
  const auto text = thrown_text<tandem::TimeoutError>([] {
    run_processes(2, "hangs_on_rank_1", RunProcessesOptions().deadline(5s));
  });
  REQUIRE(text.has_value());
  CHECK(missing_parts(
            *text,
            {"deadline of 5000 ms",
             "rank 0 succeeded",
             "rank 1 was in: "
             "hanging"})
            .empty());
}

TEST_CASE("run_processes refuses a function that is not there", "[testing]") {
  CHECK_THROWS_AS(run_processes(1, "no such"), tandem::ConfigError);
}

TEST_CASE("a rank leaves no process behind", "[testing]") {
  const tandem::testing::TemporaryDirectory directory;
  run_processes(
      1,
      "leaves_a_child",
      RunProcessesOptions().argument(directory.path()));
  CHECK(std::filesystem::exists(directory.path() / "0"));
  CHECK(still_running(directory.path(), {"0"}).empty());
}

TEST_CASE("a rank is killed where the options say", "[testing]") {
  const auto outcomes = try_processes(
      2,
      "hangs_on_rank_1",
      RunProcessesOptions().kill(
          tandem::testing::KillRank{1, "hanging", SIGTERM}));
  CHECK(outcomes[0].success());
  CHECK(outcomes[1].status.signal == SIGTERM);
  CHECK(outcomes[1].last_doing == "hanging");
}

TEST_CASE("ranks end with the binary that started them", "[testing]") {
  const tandem::testing::TemporaryDirectory directory;
  const auto outcomes = try_processes(
      1,
      "runs_processes_itself",
      RunProcessesOptions()
          .argument(directory.path())
          .kill(tandem::testing::KillRank{0, "ranks run"}));
  CHECK(outcomes[0].status.signal == SIGKILL);
  std::vector<std::string> running;
  for (const auto* file : {"0", "1"}) {
    std::ifstream pids(directory.path() / file);
    std::string child;
    std::string rank;
    REQUIRE(pids >> child >> rank);
    std::ofstream(directory.path() / "ranks", std::ios::app) << rank << '\n';
    ::kill(std::stoi(child), SIGKILL); // a rank's own children are its own
  }
  CHECK(still_running(directory.path(), {"ranks"}).empty());
}
