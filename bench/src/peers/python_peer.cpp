#include "peers/python_peer.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <tandem/core/errors.h>

#include "workloads/classifier.h"

namespace tandem::bench {

namespace {

constexpr auto kScript = TANDEM_BENCH_PEERS "/python_ddp.py";

} // namespace

void become_python_peer(
    const std::string& python,
    const Mode& mode,
    const BenchRecipe& recipe,
    int64_t mode_index,
    int64_t port) {
  std::vector<std::string> words{
      python,
      kScript,
      "--workload",
      architecture_name(recipe.workload),
      "--batch",
      std::to_string(recipe.batch),
      "--seed",
      std::to_string(recipe.seed),
      "--threads",
      std::to_string(mode.threads),
      "--mode-index",
      std::to_string(mode_index),
      "--coordinator-port",
      std::to_string(port)};
  if (mode.strategy == TimedStrategy::kPythonNoSync) {
    words.emplace_back("--no-sync");
  }
  std::vector<char*> pointers;
  for (auto& word : words) {
    pointers.push_back(word.data());
  }
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  throw Error(fmt::format(
      "--python: expected a Python that has torch, got '{}': {}. After "
      "scripts/setup.sh --with-python there is one in .deps/torch-*/bin",
      python,
      std::strerror(errno)));
}

} // namespace tandem::bench
