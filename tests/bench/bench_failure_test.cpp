#include <csignal>
#include <fstream>
#include <sstream>

#include "../launch/child_process.h"
#include "program.h"
#include "tandem_catch.h"

namespace {

using tandem::bench::test::kRankVariables;
using tandem::test::ChildProcess;
using tandem::test::children_of;
using tandem::test::ProcessHandle;

/// A run that takes for ever, at a point where the dp mode has had a turn.
struct LongRun {
  explicit LongRun(const std::string& strategies)
      : program(
            {TANDEM_PROGRAM,
             "bench",
             "--workload=mlp",
             "--device=cpu",
             "--strategy=" + strategies,
             "--batch=4",
             "--steps=100000000",
             "--steps-per-turn=2"},
            kRankVariables) {
    program.read_until([&] {
      return program.err().find("timed mlp/dp/2/4") != std::string::npos;
    });
  }

  ChildProcess program;
};

/// All processes below `parent`.
std::vector<pid_t> descendants_of(pid_t parent) {
  std::vector<pid_t> all;
  for (const pid_t child : children_of(parent)) {
    all.push_back(child);
    const auto below = descendants_of(child);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

/// The child of `parent` with this word on its command line.
pid_t child_with_word(pid_t parent, const std::string& word) {
  for (const pid_t child : children_of(parent)) {
    std::ifstream file("/proc/" + std::to_string(child) + "/cmdline");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find('\0' + word + '\0') != std::string::npos) {
      return child;
    }
  }
  throw std::runtime_error("no child with " + word);
}

} // namespace

TEST_CASE(
    "a worker that is killed ends the run, and its mode is named",
    "[bench]") {
  LongRun run("dp");
  ::kill(child_with_word(run.program.pid(), "dp"), SIGKILL);
  CHECK(run.program.wait(std::chrono::seconds(20)) == 1);
  CHECK_THAT(
      run.program.err(),
      Catch::Matchers::ContainsSubstring(
          "[bench] mlp/dp/2/4: expected 1 worker(s)") &&
          Catch::Matchers::ContainsSubstring("exit code 137"));
}

TEST_CASE("no process is left when a run is killed", "[bench]") {
  LongRun run("dp,ddp");
  std::vector<std::unique_ptr<ProcessHandle>> handles;
  for (const pid_t pid : descendants_of(run.program.pid())) {
    handles.push_back(std::make_unique<ProcessHandle>(pid));
  }
  CHECK(handles.size() >= 4);
  run.program.signal(SIGKILL);
  for (const auto& handle : handles) {
    CHECK(handle->gone_within(std::chrono::seconds(20)));
  }
}
