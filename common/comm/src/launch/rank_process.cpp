#include "rank_process.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace tandem::comm::launch {

namespace {

// A program and its environment as execve wants them, made before the fork.
class ExecArguments {
 public:
  explicit ExecArguments(const Program& program)
      : path_(program.path), argument_texts_(program.arguments) {
    for (const auto& [name, value] : program.environment) {
      variable_texts_.push_back(fmt::format("{}={}", name, value));
    }
    arguments_ = pointers(argument_texts_);
    variables_ = pointers(variable_texts_);
  }

  void exec() const noexcept {
    ::execve(path_.c_str(), arguments_.data(), variables_.data());
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (auto& text : texts) {
      result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
  }

  std::string path_;
  std::vector<std::string> argument_texts_;
  std::vector<std::string> variable_texts_;
  std::vector<char*> arguments_;
  std::vector<char*> variables_;
};

struct ChildStreams {
  int input;
  int output;
  int error;
  int status; // takes the errno of a failed start
};

// Runs between fork and exec in a process that has threads: calls only what is
// safe in a signal handler.
[[noreturn]] void become_rank(
    const ExecArguments& exec_arguments,
    const ChildStreams& streams,
    const Guard& guard,
    const sigset_t& signal_mask) {
  ::setpgid(0, 0);
  guard.announce(::getpid());
  ::dup2(streams.input, STDIN_FILENO);
  ::dup2(streams.output, STDOUT_FILENO);
  ::dup2(streams.error, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &signal_mask, nullptr);
  exec_arguments.exec();
  const int error = errno;
  [[maybe_unused]] const auto written =
      ::write(streams.status, &error, sizeof error);
  ::_exit(127);
}

// The errno of a failed start; 0 once the program runs.
int read_start_error(FileDescriptor status) {
  int error = 0;
  while (::read(status.get(), &error, sizeof error) == -1 && errno == EINTR) {
  }
  return error;
}

void set_nonblocking(const FileDescriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, O_NONBLOCK);
}

} // namespace

RankProcess::RankProcess(
    const Program& program,
    const Guard& guard,
    const sigset_t& signal_mask)
    : guard_(guard) {
  const ExecArguments exec_arguments(program);
  const FileDescriptor null(
      checked(::open("/dev/null", O_RDONLY | O_CLOEXEC), "open /dev/null"));
  auto output = make_pipe();
  auto error = make_pipe();
  auto status = make_pipe();
  set_nonblocking(output.read_end);
  set_nonblocking(error.read_end);
  pid_ = checked(::fork(), "fork");
  if (pid_ == 0) {
    become_rank(
        exec_arguments,
        {null.get(),
         output.write_end.get(),
         error.write_end.get(),
         status.write_end.get()},
        guard,
        signal_mask);
  }
  status.write_end.reset();
  if (const int failure = read_start_error(std::move(status.read_end))) {
    ::waitpid(pid_, nullptr, 0);
    guard.forget(pid_);
    throw ProgramError(
        fmt::format(
            "[launch] program '{}': cannot be run: {}",
            program.path,
            std::strerror(failure)),
        failure == ENOENT ? 127 : 126);
  }
  output_ = std::move(output.read_end);
  error_ = std::move(error.read_end);
}

RankProcess::~RankProcess() {
  if (!group_gone_) {
    signal_group(SIGKILL);
  }
  if (!ended_) {
    ::waitpid(pid_, nullptr, 0);
  }
}

void RankProcess::signal_group(int signal) const {
  if (!group_gone_) {
    ::kill(-pid_, signal);
  }
}

std::optional<ExitStatus> RankProcess::poll_exit() {
  int status = 0;
  if (ended_ || ::waitpid(pid_, &status, WNOHANG) != pid_) {
    return std::nullopt;
  }
  ended_ = true;
  return WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)}
                             : ExitStatus{WEXITSTATUS(status), 0};
}

bool RankProcess::poll_group_gone() {
  if (!ended_ || group_gone_) {
    return group_gone_;
  }
  // Orphans of the group are this process's children (see Subreaper).
  while (::waitpid(-pid_, nullptr, WNOHANG) > 0) {
  }
  group_gone_ = ::kill(-pid_, 0) == -1 && errno == ESRCH;
  if (group_gone_) {
    guard_.forget(pid_);
  }
  return group_gone_;
}

} // namespace tandem::comm::launch
