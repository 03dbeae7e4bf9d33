#include "tandem_catch.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include <unistd.h>

#include <tandem/comm/launcher.h>
#include <tandem/testing/temporary_directory.h>

#include "child_process.h"
#include "launched.h"

namespace {

using namespace tandem;
using namespace std::chrono_literals;

using test::launch_caught;
using test::sh;

test::Launched launch_actions(
    int64_t num_ranks,
    const std::vector<std::string>& actions) {
  return launch_caught(num_ranks, test::rank_program(actions));
}

} // namespace

TEST_CASE("launch_local lets ranks meet over a store of its own", "[launch]") {
  const auto launched = launch_actions(3, {"meet"});
  CHECK(launched.result.exit_code == 0);
  CHECK_FALSE(launched.result.first_failure);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK_THAT(
        launched.out,
        Catch::Matchers::ContainsSubstring(
            "[rank " + std::to_string(rank) + "] sum 6 of 3\n"));
  }
}

TEST_CASE(
    "launch_local passes both streams on apart, in whole prefixed lines",
    "[launch]") {
  const auto launched = launch_caught(
      2,
      sh("echo out $RANK; echo err $RANK >&2; printf unfinished"));
  for (const auto* rank : {"0", "1"}) {
    const std::string prefix = std::string("[rank ") + rank + "] ";
    CHECK_THAT(
        launched.out,
        Catch::Matchers::ContainsSubstring(prefix + "out " + rank + "\n") &&
            Catch::Matchers::ContainsSubstring(prefix + "unfinished\n"));
    CHECK_THAT(
        launched.err,
        Catch::Matchers::ContainsSubstring(prefix + "err " + rank + "\n"));
  }
  CHECK(test::count_of("\n", launched.out) == 4);
  CHECK(test::count_of("err", launched.out) == 0);
}

TEST_CASE(
    "launch_local loses nothing of two ranks' megabytes, nor mixes their lines",
    "[launch]") {
  const auto launched = launch_caught(
      2,
      sh("i=0; while [ $i -lt 20 ]; do seq -f \"$RANK%080.0f\" 1 1000; "
         "i=$((i+1)); done"));
  CHECK(launched.result.exit_code == 0);
  CHECK(
      launched.out.size() ==
      2 * 20000 * std::string("[rank 0] 0\n").size() + 2 * 20000 * 80);
  CHECK(test::count_of("[rank 0] 0", launched.out) == 20000);
  CHECK(test::count_of("[rank 1] 1", launched.out) == 20000);
  CHECK(test::count_of("\n[rank ", launched.out) == 39999);
}

TEST_CASE(
    "launch_local reports the first failure and returns its code",
    "[launch]") {
  const auto launched =
      launch_actions(3, {"1:err=what happened", "1:exit=7", "hang"});
  CHECK(launched.result.exit_code == 7);
  REQUIRE(launched.result.first_failure);
  CHECK(launched.result.first_failure->rank == 1);
  CHECK(launched.result.first_failure->status.code == 7);
  CHECK(
      launched.result.first_failure->last_lines ==
      std::vector<std::string>{"what happened"});
  CHECK_THAT(
      launched.err,
      Catch::Matchers::ContainsSubstring("[launch] rank 1 (pid ") &&
          Catch::Matchers::ContainsSubstring(
              "exited with code 7; its last lines:\n"
              "[launch] | what happened\n"));
}

TEST_CASE(
    "launch_local names the signal that killed a rank and adds 128 to it",
    "[launch]") {
  for (const auto& [number, name] :
       {std::pair(SIGKILL, "SIGKILL"), std::pair(SIGABRT, "SIGABRT")}) {
    const auto launched =
        launch_actions(2, {"0:die=" + std::to_string(number), "hang"});
    CHECK(launched.result.exit_code == 128 + number);
    CHECK(launched.result.first_failure.value().rank == 0);
    CHECK(launched.result.first_failure.value().status.signal == number);
    CHECK_THAT(
        launched.err,
        Catch::Matchers::ContainsSubstring(
            std::string("was killed by ") + name + ", without output\n"));
  }
}

TEST_CASE(
    "launch_local kills ranks that ignore SIGTERM after the grace",
    "[launch]") {
  // Rank 1 fails only when rank 0 is deaf.
  const testing::TemporaryDirectory folder;
  const auto launched = launch_caught(
      2,
      sh("if [ $RANK = 0 ]; then trap '' TERM; touch \"$FOLDER/deaf\"; fi; "
         "while [ $RANK = 0 ]; do sleep 1000; done; "
         "while [ ! -e \"$FOLDER/deaf\" ]; do sleep 0.01; done; exit 3"),
      200ms,
      {{"FOLDER", folder.path().string()}});
  CHECK(launched.result.exit_code == 3);
  CHECK(launched.result.first_failure.value().rank == 1);
  CHECK(test::children_of(::getpid()).empty());
}

TEST_CASE(
    "launch_local ends what ranks that succeeded left running",
    "[launch]") {
  const auto launched =
      launch_caught(2, sh("sleep 1000 & echo left $!; exit 0"));
  CHECK(launched.result.exit_code == 0);
  const auto pids = test::numbers_after("left ", launched.out);
  REQUIRE(pids.size() == 2);
  for (const auto pid : pids) {
    CHECK(::kill(pid, 0) == -1);
  }
}

TEST_CASE(
    "launch_local sets OMP_NUM_THREADS where nobody did, and says so once",
    "[launch]") {
  ::unsetenv("OMP_NUM_THREADS");
  const auto script = sh("echo threads $OMP_NUM_THREADS");
  const auto unset = launch_caught(2, script);
  CHECK(test::count_of("threads 1\n", unset.out) == 2);
  CHECK(test::count_of("OMP_NUM_THREADS=1", unset.err) == 1);
  const auto optional =
      launch_caught(2, script, 5s, {{"OMP_NUM_THREADS", "3"}});
  CHECK(test::count_of("threads 3\n", optional.out) == 2);
  CHECK(optional.err.empty());
  ::setenv("OMP_NUM_THREADS", "4", 1);
  const auto set = launch_caught(2, script);
  CHECK(test::count_of("threads 4\n", set.out) == 2);
  CHECK(set.err.empty());
}

TEST_CASE("launch_local says that ranks outnumber cores", "[launch]") {
  const auto num_cores =
      static_cast<int64_t>(std::thread::hardware_concurrency());
  CHECK_THAT(
      launch_caught(num_cores + 1, {"true"}).err,
      Catch::Matchers::ContainsSubstring(
          std::to_string(num_cores + 1) + " ranks") &&
          Catch::Matchers::ContainsSubstring(
              std::to_string(num_cores) + " cores"));
  CHECK(launch_caught(num_cores, {"true"}).err.empty());
}

TEST_CASE(
    "launch_local gives ranks an empty stdin and no descriptor of its own",
    "[launch]") {
  const auto command = sh("cat; ls /proc/self/fd | tr '\\n' ' '");
  const auto launched = launch_caught(2, command);
  test::ChildProcess plain(
      sh("exec < /dev/null; ls /proc/self/fd | tr '\\n' ' '"));
  REQUIRE(plain.wait() == 0);
  for (int rank = 0; rank < 2; ++rank) {
    CHECK_THAT(
        launched.out,
        Catch::Matchers::ContainsSubstring(
            "[rank " + std::to_string(rank) + "] " + plain.out() + "\n"));
  }
}

TEST_CASE(
    "launch_local sees exit codes though its caller ignores SIGCHLD, and "
    "leaves the caller's signals as they were",
    "[launch]") {
  std::signal(SIGCHLD, SIG_IGN);
  CHECK(launch_actions(2, {"1:exit=5"}).result.exit_code == 5);
  CHECK(std::signal(SIGCHLD, SIG_DFL) == SIG_IGN);
  sigset_t mask{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  CHECK(::sigismember(&mask, SIGINT) == 0);
}

TEST_CASE(
    "launch_local refuses impossible options before anything starts",
    "[launch]") {
  CHECK_THROWS_AS(launch_caught(0, {"true"}), ConfigError);
  CHECK_THROWS_AS(launch_caught(-1, {"true"}), ConfigError);
  CHECK_THROWS_AS(launch_caught(501, {"true"}), ConfigError);
  CHECK_THROWS_AS(launch_caught(1, {}), ConfigError);
  CHECK_THROWS_AS(launch_caught(1, {""}), ConfigError);
  CHECK_THROWS_AS(launch_caught(1, {"/"}), comm::ProgramError);
  CHECK(test::children_of(::getpid()).empty());
}

TEST_CASE(
    "launch_local fails in one piece if the kernel cannot run the file",
    "[launch]") {
  const testing::TemporaryDirectory folder;
  const auto path = (folder.path() / "script").string();
  std::ofstream(path) << "#!/no/such/shell\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  try {
    launch_caught(2, {path});
    FAIL("it ran");
  } catch (const comm::ProgramError& error) {
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(path));
  }
  CHECK(test::children_of(::getpid()).empty());
}
