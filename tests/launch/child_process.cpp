#include "child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tandem::test {

namespace {

using comm::launch::checked;
using comm::launch::make_pipe;

// Every signal as by default and unblocked: the test may run in the background
// of a shell, which would have it ignore SIGINT.
void set_default_signals(posix_spawnattr_t& attributes) {
  sigset_t all{};
  sigset_t none{};
  sigfillset(&all);
  sigemptyset(&none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(
      &attributes,
      POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

std::vector<std::string> environment_without(
    const std::vector<std::string>& unset) {
  std::vector<std::string> variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const auto name = text.substr(0, text.find('='));
    if (std::find(unset.begin(), unset.end(), name) == unset.end()) {
      variables.push_back(text);
    }
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

pid_t spawn(
    std::vector<std::string> command,
    std::vector<std::string> variables,
    int out,
    int err) {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  ::posix_spawnattr_init(&attributes);
  set_default_signals(attributes);
  pid_t pid = -1;
  const int error = ::posix_spawnp(
      &pid,
      command.front().c_str(),
      &actions,
      &attributes,
      pointers(command).data(),
      pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    throw std::runtime_error("cannot start " + command.front());
  }
  return pid;
}

// Appends what `stream` holds; closes it at its end.
void read_some(FileDescriptor& stream, std::string& text) {
  std::array<char, 1 << 16> bytes;
  const auto size = ::read(stream.get(), bytes.data(), bytes.size());
  if (size > 0) {
    text.append(bytes.data(), static_cast<std::size_t>(size));
  } else {
    stream.reset();
  }
}

} // namespace

ProcessHandle::ProcessHandle(pid_t pid)
    : pid_(pid),
      fd_(checked(
          static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)),
          "pidfd_open")) {}

bool ProcessHandle::gone_within(std::chrono::milliseconds limit) const {
  pollfd watched{fd_.get(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(limit.count())) == 1;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) {
      children.push_back(child);
    }
  }
  return children;
}

ChildProcess::ChildProcess(
    const std::vector<std::string>& command,
    const std::vector<std::string>& unset)
    : out_pipe_(make_pipe()),
      err_pipe_(make_pipe()),
      handle_(spawn(
          command,
          environment_without(unset),
          out_pipe_.write_end.get(),
          err_pipe_.write_end.get())) {
  out_pipe_.write_end.reset();
  err_pipe_.write_end.reset();
}

ChildProcess::~ChildProcess() {
  if (!reaped_) {
    signal(SIGKILL);
    ::waitpid(pid(), nullptr, 0);
  }
}

void ChildProcess::signal(int number) const {
  ::kill(pid(), number);
}

bool ChildProcess::pump(std::chrono::steady_clock::time_point deadline) {
  auto& out = out_pipe_.read_end;
  auto& err = err_pipe_.read_end;
  const int out_fd = reads_out_ ? out.get() : -1; // poll passes -1 over
  if (out_fd < 0 && !err) {
    return false;
  }
  std::array<pollfd, 2> watched{
      pollfd{out_fd, POLLIN, 0},
      pollfd{err.get(), POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0 ||
      ::poll(watched.data(), watched.size(), static_cast<int>(left.count())) <=
          0) {
    throw std::runtime_error(
        "the program did not get there in time; stdout:\n" + out_ +
        "\nstderr:\n" + err_);
  }
  if (watched[0].revents != 0) {
    read_some(out, out_);
  }
  if (watched[1].revents != 0) {
    read_some(err, err_);
  }
  return true;
}

void ChildProcess::read_until(
    const std::function<bool()>& done,
    std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (!pump(deadline)) {
      throw std::runtime_error(
          "the program ended before; stdout:\n" + out_ + "\nstderr:\n" + err_);
    }
  }
}

int ChildProcess::wait(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (pump(deadline)) {
  }
  int status = 0;
  ::waitpid(pid(), &status, 0);
  reaped_ = true;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::vector<pid_t> numbers_after(
    const std::string& word,
    const std::string& text) {
  std::vector<pid_t> numbers;
  for (auto at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    numbers.push_back(std::stoi(text.substr(at + word.size())));
  }
  return numbers;
}

int count_of(const std::string& part, const std::string& text) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

} // namespace tandem::test
