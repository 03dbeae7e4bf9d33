#include "processes/rerun.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "processes/child_program.h"
#include "processes/system_error.h"

namespace tandem::bench {

namespace {

/// A new empty folder, removed with its content by the destructor.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern =
        (std::filesystem::temp_directory_path() / "tandem-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw_system_error("temporary folder " + pattern, errno);
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const {
    return path_;
  }

 private:
  std::filesystem::path path_;
};

} // namespace

int rerun(const CommandLine& arguments) {
  return ChildProgram(arguments).wait();
}

RerunResults rerun_for_results(CommandLine arguments) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.json";
  arguments.insert(arguments.end(), {"--json", file.string()});
  RerunResults results;
  results.exit_code = rerun(arguments);
  if (std::filesystem::exists(file)) {
    results.rows = train::read_results(file).rows;
  }
  return results;
}

} // namespace tandem::bench
