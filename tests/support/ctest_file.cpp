#include "ctest_file.h"

#include "tandem_catch.h"

#include <algorithm>
#include <fstream>
#include <iostream>

namespace tandem::test {
namespace {

constexpr int kLimitSeconds = 60;
constexpr int kSlowLimitSeconds = 480;

// CMake's bracket argument: no character needs an escape in it.
std::string bracket(const std::string& text) {
  return "[==[" + text + "]==]";
}

// A Catch2 test specification that matches `title` and nothing else.
std::string specification(const std::string& title) {
  std::string spec;
  for (const char c : title) {
    if (c == '\\' || c == ',' || c == '[' || c == '"') {
      spec += '\\';
    }
    spec += c;
  }
  return spec;
}

std::string join(const std::vector<std::string>& words) {
  std::string joined;
  for (const auto& word : words) {
    joined += (joined.empty() ? "" : ";") + word;
  }
  return joined;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool makes_sense_on(const std::string& kind, const Case& test) {
  constexpr const char* prefix = "only-";
  return contains(test.tags, prefix + kind) ||
      std::none_of(test.tags.begin(), test.tags.end(), [&](const auto& tag) {
           return tag.starts_with(prefix);
         });
}

void write_case(
    std::ostream& out,
    const CtestFile& file,
    const std::string& kind,
    const Case& test) {
  std::string name(file.part);
  std::vector<std::string> labels(file.labels);
  labels.push_back(file.part);
  if (kind != "cpu") {
    name += " on " + kind;
    labels.push_back(kind == "cuda" ? "gpu" : kind);
  }
  labels.insert(labels.end(), test.tags.begin(), test.tags.end());
  name.append(": ").append(test.title);
  out << "add_test(" << bracket(name) << ' ' << bracket(file.binary) << ' '
      << bracket(specification(test.title)) << ")\n"
      << "set_tests_properties(" << bracket(name) << " PROPERTIES"
      << " TIMEOUT "
      << (contains(labels, "slow") ? kSlowLimitSeconds : kLimitSeconds)
      << " SKIP_RETURN_CODE " << kSkippedExitCode
      << " ENVIRONMENT \"OMP_NUM_THREADS=1;TANDEM_TEST_DEVICES=" << kind
      << "\" LABELS " << bracket(join(labels))
      << (contains(labels, "gpu") ? " DISABLED ${tandem_no_gpu}" : "") << ")\n";
}

} // namespace

int write_ctest_file(const CtestFile& file, const std::vector<Case>& cases) {
  std::ofstream out(file.path);
  out << "set(tandem_no_gpu ON)\n"
      << "if(EXISTS /dev/nvidiactl OR EXISTS /dev/dxg)\n"
      << "  set(tandem_no_gpu OFF)\n"
      << "endif()\n";
  for (const auto& kind : file.kinds) {
    for (const auto& test : cases) {
      if (makes_sense_on(kind, test)) {
        write_case(out, file, kind, test);
      }
    }
  }
  out.close();
  if (!out) {
    std::cerr << "cannot write " << file.path << '\n';
    return 1;
  }
  return 0;
}

} // namespace tandem::test
