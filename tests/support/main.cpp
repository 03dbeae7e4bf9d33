// main of every test binary: Catch2's, and --write-ctest, which writes the
// ctest entries of the binary's cases (see scripts/cmake/TandemTest.cmake).
#define CATCH_CONFIG_RUNNER
#include "tandem_catch.h"

#include "before_tests.h"
#include "ctest_file.h"
#include "warnings.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::test {
namespace {

bool& skipped() {
  static bool value = false;
  return value;
}

} // namespace

void note_skip(const std::string& reason) {
  skipped() = true;
  std::cout << "not run: " << reason << '\n';
}

} // namespace tandem::test

namespace {

std::vector<tandem::test::Case> registered_cases() {
  std::vector<tandem::test::Case> cases;
#if TANDEM_CATCH_VERSION == 3
  const auto& registry = Catch::getRegistryHub().getTestCaseRegistry();
  for (const auto* info : registry.getAllInfos()) {
    std::vector<std::string> tags;
    for (const auto& tag : info->tags) {
      tags.emplace_back(tag.original.data(), tag.original.size());
    }
    if (!info->isHidden()) {
      cases.push_back({info->name, std::move(tags)});
    }
  }
#else
  const auto& registry = Catch::getRegistryHub().getTestCaseRegistry();
  for (const auto& info : registry.getAllTests()) {
    if (!info.isHidden()) {
      cases.push_back({info.name, info.tags});
    }
  }
#endif
  return cases;
}

} // namespace

int main(int argc, char** argv) {
  tandem::test::start_devices();
  if (const auto code = tandem::test::run_as_rank()) {
    return *code;
  }
  const std::vector<std::string> args(argv, argv + argc);
  if (args.size() > 4 && args[1] == "--write-ctest") {
    tandem::test::CtestFile file{args[2], args[0], args[3], {}, {}};
    std::istringstream kinds(args[4]);
    for (std::string kind; std::getline(kinds, kind, ',');) {
      file.kinds.push_back(kind);
    }
    file.labels.assign(args.begin() + 5, args.end());
    return tandem::test::write_ctest_file(file, registered_cases());
  }
  tandem::test::watch_warnings();
  const int failed = Catch::Session().run(argc, argv);
  if (failed == 0 && tandem::test::report_unexpected_warnings()) {
    return 1;
  }
  if (failed == 0 && tandem::test::skipped()) {
    return tandem::test::kSkippedExitCode;
  }
  return failed;
}
