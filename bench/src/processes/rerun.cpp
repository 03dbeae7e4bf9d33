#include "processes/rerun.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/core/errors.h>

namespace tandem::bench {

namespace {

[[noreturn]] void throw_system_error(const std::string& what, int code) {
  throw Error(
      fmt::format("{}: {}", what, std::generic_category().message(code)));
}

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

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) {
      throw_system_error("waitpid", errno);
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace

std::string program_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

int rerun(const CommandLine& arguments) {
  CommandLine words{program_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    throw_system_error(words[0], error);
  }
  return wait_for(pid);
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
