#include "processes/child_program.h"

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tandem/core/errors.h>

#include "processes/system_error.h"

namespace tandem::bench {

std::string program_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

ChildProgram::ChildProgram(const CommandLine& arguments) {
  CommandLine words{program_path()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const int error =
      ::posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) {
    throw_system_error(words[0], error);
  }
}

ChildProgram::~ChildProgram() {
  if (exit_code_) {
    return;
  }
  ::kill(pid_, SIGTERM);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProgram::exit_code() {
  if (!exit_code_) {
    reap(WNOHANG);
  }
  return exit_code_;
}

int ChildProgram::wait() {
  while (!exit_code_) {
    reap(0);
  }
  return *exit_code_;
}

void ChildProgram::reap(int wait_options) {
  int status = 0;
  const pid_t reaped = ::waitpid(pid_, &status, wait_options);
  if (reaped < 0 && errno != EINTR) {
    throw_system_error("waitpid", errno);
  }
  if (reaped == pid_) {
    exit_code_ =
        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
}

void end_with_parent() {
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
    throw_system_error("prctl PR_SET_PDEATHSIG", errno);
  }
}

} // namespace tandem::bench
