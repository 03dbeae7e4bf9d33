#include "tandem_catch.h"

#include <csignal>
#include <filesystem>
#include <fstream>

#include "child_process.h"

namespace {

using tandem::test::ChildProcess;
using tandem::test::ProcessHandle;
using namespace std::chrono_literals;

// What the cases call "no process left": all that a launch ever started.
constexpr auto kNoneLeft = 2s;

std::vector<std::string> tandem_launch(
    const std::vector<std::string>& command) {
  std::vector<std::string> line{TANDEM_PROGRAM, "launch", "-n", "2", "--"};
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

// Waits until both ranks run, and holds them and all that the launcher started.
std::vector<ProcessHandle> all_processes(ChildProcess& launcher) {
  using namespace tandem::test;
  const auto ready = [&] {
    return numbers_after("ready ", launcher.out() + launcher.err());
  };
  launcher.read_until([&] { return ready().size() == 2; });
  std::vector<ProcessHandle> handles;
  for (const auto pid : ready()) {
    handles.emplace_back(pid);
  }
  for (const auto pid : children_of(launcher.pid())) {
    handles.emplace_back(pid);
  }
  return handles;
}

void check_none_left(const std::vector<ProcessHandle>& handles) {
  CHECK(handles.size() >= 5); // two ranks, as said and as listed, and the guard
  const auto deadline = std::chrono::steady_clock::now() + kNoneLeft;
  for (const auto& handle : handles) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    CHECK(handle.gone_within(std::max(left, 0ms)));
  }
}

} // namespace

TEST_CASE(
    "tandem launch killed by SIGKILL leaves no rank behind",
    "[launch][FT-08]") {
  ChildProcess launcher(
      tandem_launch({TANDEM_RANK_PROGRAM, "ignore-term", "ready", "hang"}));
  const auto handles = all_processes(launcher);
  launcher.signal(SIGKILL);
  check_none_left(handles);
}

TEST_CASE(
    "tandem launch killed by SIGKILL leaves no error files behind",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash",
       "-c",
       "echo '{}' > $TORCHELASTIC_ERROR_FILE; "
       "echo file $TORCHELASTIC_ERROR_FILE.; echo ready $$; "
       "while :; do sleep 1000; done"}));
  const auto handles = all_processes(launcher);
  const auto begin = launcher.out().find("file ") + 5;
  const std::filesystem::path file =
      launcher.out().substr(begin, launcher.out().find(".\n", begin) - begin);
  CHECK(std::filesystem::exists(file));
  launcher.signal(SIGKILL);
  check_none_left(handles);
  CHECK_FALSE(std::filesystem::exists(file.parent_path()));
}

TEST_CASE(
    "tandem launch killed by SIGKILL leaves no rank behind a shell",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash", "-c", "'" TANDEM_RANK_PROGRAM "' ready hang; true"}));
  const auto handles = all_processes(launcher);
  launcher.signal(SIGKILL);
  check_none_left(handles);
}

TEST_CASE(
    "tandem launch ends at the second Ctrl-C, its deaf ranks too",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash",
       "-c",
       "trap 'echo heard $RANK' INT; trap '' TERM; echo ready $$; "
       "while :; do sleep 1000; done"}));
  const auto handles = all_processes(launcher);
  launcher.signal(SIGINT);
  launcher.read_until(
      [&] { return tandem::test::count_of("heard", launcher.out()) == 2; });
  launcher.signal(SIGINT);
  check_none_left(handles);
  CHECK(launcher.wait() == 128 + SIGKILL);
  CHECK_THAT(
      launcher.err(),
      Catch::Matchers::ContainsSubstring("[launch] interrupted by SIGINT\n"));
}

TEST_CASE(
    "tandem launch ends at the second Ctrl-C though nobody reads its output",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash",
       "-c",
       "trap '' INT TERM; seq -f %0100.0f 2000; echo ready $$ >&2; "
       "while :; do sleep 1000; done"}));
  launcher.leave_out_unread(); // more than a pipe holds
  const auto handles = all_processes(launcher);
  launcher.signal(SIGINT);
  launcher.signal(SIGTERM);
  check_none_left(handles);
  const ProcessHandle launcher_handle(launcher.pid());
  CHECK(launcher_handle.gone_within(kNoneLeft));
}

TEST_CASE(
    "tandem launch forwards the first signal and leaves the ranks time",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash",
       "-c",
       "trap 'echo saving; sleep 0.2; echo saved; exit 0' TERM; "
       "echo ready $$; while :; do sleep 0.05; done"}));
  const auto handles = all_processes(launcher);
  launcher.signal(SIGTERM);
  CHECK(launcher.wait() == 0);
  CHECK(tandem::test::count_of("saved", launcher.out()) == 2);
  check_none_left(handles);
}

TEST_CASE(
    "tandem launch takes its guard with it at a normal end",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch(
      {"bash",
       "-c",
       "trap 'exit 0' USR1; echo ready $$; "
       "while :; do sleep 0.05; done"}));
  const auto handles = all_processes(launcher);
  for (const auto pid : tandem::test::numbers_after("ready ", launcher.out())) {
    ::kill(pid, SIGUSR1);
  }
  CHECK(launcher.wait() == 0);
  check_none_left(handles);
}

TEST_CASE(
    "the guard of tandem launch hears no signal but SIGKILL",
    "[launch][FT-08]") {
  ChildProcess launcher(tandem_launch({TANDEM_RANK_PROGRAM, "ready", "hang"}));
  const auto handles = all_processes(launcher);
  for (const auto& handle : handles) {
    std::string name;
    std::getline(
        std::ifstream("/proc/" + std::to_string(handle.pid()) + "/comm"),
        name);
    if (name == "tandem-guard") {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
        ::kill(handle.pid(), signal);
      }
      CHECK_FALSE(handle.gone_within(100ms));
    }
  }
  launcher.signal(SIGKILL);
  check_none_left(handles);
}
