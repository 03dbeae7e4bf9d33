#include "program.h"

#include <tandem/testing/temporary_directory.h>

#include "../launch/child_process.h"

namespace tandem::bench::test {

const std::vector<std::string> kRankVariables{
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE"};

Ended run_tandem(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TANDEM_PROGRAM);
  tandem::test::ChildProcess program(arguments, kRankVariables);
  Ended ended;
  ended.code = program.wait(std::chrono::minutes(5));
  ended.out = program.out();
  ended.err = program.err();
  return ended;
}

Ended run_for_results(std::vector<std::string> arguments) {
  const testing::TemporaryDirectory dir;
  const auto file = dir.path() / "results.json";
  arguments.insert(arguments.end(), {"--json", file.string()});
  auto ended = run_tandem(std::move(arguments));
  if (std::filesystem::exists(file)) {
    ended.rows = train::read_results(file).rows;
  }
  return ended;
}

} // namespace tandem::bench::test
