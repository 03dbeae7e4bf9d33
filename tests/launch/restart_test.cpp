#include "tandem_catch.h"

#include <csignal>
#include <string>
#include <vector>

#include <unistd.h>

#include <tandem/comm/launcher.h>

#include "child_process.h"
#include "launched.h"

namespace {

using namespace tandem;
using test::count_of;
using test::launch_caught;
using test::Launched;
using namespace std::chrono_literals;

Launched launch_with_restarts(
    int64_t max_restarts,
    std::vector<std::string> command) {
  return launch_caught(
      comm::LaunchOptions(2, std::move(command)).max_restarts(max_restarts));
}

} // namespace

TEST_CASE(
    "launch_local starts all ranks again after an exception or a kill",
    "[launch]") {
  for (const std::string failure : {"throw=went wrong", "die=9"}) {
    const auto launched = launch_with_restarts(
        3,
        test::rank_program(
            {"meet", "@0:1:" + failure, "@0:0:hang", "say=done"}));
    CHECK(launched.result.exit_code == 0);
    CHECK_FALSE(launched.result.first_failure);
    REQUIRE(launched.result.causes.size() == 1);
    CHECK(launched.result.causes.front().rank == 1);
    CHECK(count_of("sum 3 of 2\n", launched.out) == 4);
    CHECK(count_of("done\n", launched.out) == 2);
    CHECK_THAT(
        launched.err,
        Catch::Matchers::ContainsSubstring("[launch] rank 1 (pid ") &&
            Catch::Matchers::ContainsSubstring(
                "[launch] restart 1 of at most 3: ") &&
            Catch::Matchers::ContainsSubstring(
                "[launch] succeeded at restart 1\n"));
    CHECK(
        count_of("] | ConfigError: went wrong\n", launched.err) ==
        (failure == "die=9" ? 0 : 1));
  }
}

TEST_CASE(
    "launch_local reports the first cause when every attempt fails",
    "[launch]") {
  const auto launched = launch_with_restarts(
      2,
      test::rank_program(
          {"@0:1:exit=3", "@1:0:exit=4", "@2:1:exit=5", "@3:exit=6", "hang"}));
  CHECK(launched.result.exit_code == 3);
  CHECK(launched.result.first_failure.value().rank == 1);
  REQUIRE(launched.result.causes.size() == 3);
  CHECK(launched.result.causes[1].status.code == 4);
  CHECK(launched.result.causes[2].status.code == 5);
  CHECK(count_of("all ranks start again", launched.err) == 2);
  const auto summary = launched.err.find("gave up after 2 of 2 restarts");
  REQUIRE(summary != std::string::npos);
  const auto lines = launched.err.substr(summary);
  CHECK(lines.find("code 3") < lines.find("code 4"));
  CHECK(lines.find("code 4") < lines.find("code 5"));
  CHECK(test::children_of(::getpid()).empty());
}

TEST_CASE(
    "launch_local gives each attempt torchrun's variables and a new port",
    "[launch]") {
  const auto launched = launch_with_restarts(
      1,
      test::sh("echo restart=$TORCHELASTIC_RESTART_COUNT "
               "of=$TORCHELASTIC_MAX_RESTARTS; "
               "echo port $MASTER_PORT; echo id=$TORCHELASTIC_RUN_ID.; "
               "exit $((1 - TORCHELASTIC_RESTART_COUNT))"));
  CHECK(launched.result.exit_code == 0);
  // A rank may be ended before it speaks, once the other has failed.
  CHECK(count_of("restart=0 of=1\n", launched.out) >= 1);
  CHECK(count_of("restart=1 of=1\n", launched.out) == 2);
  const auto ports = test::numbers_after("port ", launched.out);
  REQUIRE(ports.size() >= 3);
  CHECK(ports.front() != ports.back());
  const auto id = launched.out.find("id=");
  const auto text = launched.out.substr(id, launched.out.find(".\n", id) - id);
  CHECK(count_of(text + ".\n", launched.out) >= 3);
}

TEST_CASE(
    "launch_local reads the error of an attempt from that attempt alone",
    "[launch]") {
  const auto launched = launch_with_restarts(
      1,
      test::rank_program({"@0:1:throw=first", "@1:1:exit=7", "hang"}));
  REQUIRE(launched.result.causes.size() == 2);
  CHECK(launched.result.causes[0].error == "ConfigError: first");
  CHECK(launched.result.causes[1].error.empty());
  CHECK(launched.result.exit_code == 1);
}

TEST_CASE(
    "launch_local waits for the processes of an attempt before the next",
    "[launch]") {
  // Both ranks leave a process behind, and rank 0 is deaf to SIGTERM.
  const auto launched = launch_caught(
      comm::LaunchOptions(
          2,
          test::sh("sleep 1000 & echo left $!; "
                   "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; "
                   "[ $RANK = 1 ] && exit 9; trap '' TERM; echo deaf; "
                   "while :; do sleep 0.05; done"))
          .max_restarts(1)
          .grace(200ms));
  CHECK(launched.result.exit_code == 0);
  const auto pids = test::numbers_after("left ", launched.out);
  CHECK(pids.size() >= 3);
  for (const auto pid : pids) {
    CHECK(::kill(pid, 0) == -1);
  }
}

TEST_CASE(
    "launch_local refuses a number of restarts that is none",
    "[launch]") {
  CHECK_THROWS_AS(launch_with_restarts(-1, {"true"}), ConfigError);
}

TEST_CASE("tandem launch starts nothing again after Ctrl-C", "[launch]") {
  test::ChildProcess launcher(
      {TANDEM_PROGRAM,
       "launch",
       "--nproc_per_node=2",
       "--max-restarts",
       "3",
       TANDEM_RANK_PROGRAM,
       "@0:0:die=9",
       "@1:ready",
       "hang"});
  launcher.read_until([&] { return count_of("ready", launcher.out()) == 2; });
  launcher.signal(SIGINT);
  CHECK(launcher.wait() == 128 + SIGINT);
  CHECK(count_of("all ranks start again", launcher.err()) == 1);
  CHECK_THAT(
      launcher.err(),
      Catch::Matchers::ContainsSubstring("[launch] interrupted by SIGINT\n"));
}
