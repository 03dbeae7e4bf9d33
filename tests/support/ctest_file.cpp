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

void write_case(
    std::ostream& out,
    const std::string& binary,
    const std::string& name,
    const std::string& title,
    const std::vector<std::string>& labels) {
  const auto has = [&](const char* label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  };
  out << "add_test(" << bracket(name) << ' ' << bracket(binary) << ' '
      << bracket(specification(title)) << ")\n"
      << "set_tests_properties(" << bracket(name) << " PROPERTIES"
      << " TIMEOUT " << (has("slow") ? kSlowLimitSeconds : kLimitSeconds)
      << " SKIP_RETURN_CODE " << kSkippedExitCode
      << " ENVIRONMENT OMP_NUM_THREADS=1"
      << " LABELS " << bracket(join(labels))
      << (has("gpu") ? " DISABLED ${tandem_no_gpu}" : "") << ")\n";
}

} // namespace

int write_ctest_file(
    const std::string& path,
    const std::string& binary,
    const std::string& part,
    const std::vector<std::string>& labels,
    const std::vector<Case>& cases) {
  std::ofstream out(path);
  out << "set(tandem_no_gpu ON)\n"
      << "if(EXISTS /dev/nvidiactl OR EXISTS /dev/dxg)\n"
      << "  set(tandem_no_gpu OFF)\n"
      << "endif()\n";
  for (const auto& [title, tags] : cases) {
    std::vector<std::string> all(labels);
    all.push_back(part);
    all.insert(all.end(), tags.begin(), tags.end());
    std::string name(part);
    name.append(": ").append(title);
    write_case(out, binary, name, title, all);
  }
  out.close();
  if (!out) {
    std::cerr << "cannot write " << path << '\n';
    return 1;
  }
  return 0;
}

} // namespace tandem::test
