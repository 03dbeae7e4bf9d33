#include "rank_child.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

#include "rank_registry.h"

namespace tandem::testing::detail {

namespace {

void throw_if_failed(int error, const std::string& call) {
  if (error != 0) {
    throw Error("run_processes: " + call + ": " + std::strerror(error));
  }
}

/// What posix_spawn does in the child before it executes the binary.
class SpawnPlan {
 public:
  explicit SpawnPlan(int pipe_write_end) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_adddup2(&actions_, pipe_write_end, kPipeFd);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  pid_t spawn(std::string name, std::vector<std::string> variables) const {
    std::vector<char*> environment;
    environment.reserve(variables.size() + 1);
    for (auto& variable : variables) {
      environment.push_back(variable.data());
    }
    environment.push_back(nullptr);
    std::array<char*, 2> arguments{name.data(), nullptr};
    pid_t pid = -1;
    throw_if_failed(
        ::posix_spawn(
            &pid,
            "/proc/self/exe",
            &actions_,
            &attributes_,
            arguments.data(),
            environment.data()),
        "posix_spawn");
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::vector<std::string> as_variables(const comm::Environment& environment) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) {
    variables.push_back(fmt::format("{}={}", name, value));
  }
  return variables;
}

} // namespace

RankChild::RankChild(const comm::Environment& environment) {
  std::array<int, 2> ends{};
  throw_if_failed(::pipe2(ends.data(), O_CLOEXEC) == 0 ? 0 : errno, "pipe");
  pipe_ = ends[0];
  try {
    pid_ = SpawnPlan(ends[1]).spawn("tandem-rank", as_variables(environment));
  } catch (...) {
    ::close(ends[1]);
    close_pipe();
    throw;
  }
  ::close(ends[1]);
}

RankChild::~RankChild() {
  if (!ended_) {
    signal_group(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  close_pipe();
}

void RankChild::read_pipe() {
  std::array<char, 65536> piece{};
  const auto count = ::read(pipe_, piece.data(), piece.size());
  if (count > 0) {
    reader_.feed(
        std::string(piece.data(), static_cast<size_t>(count)),
        [this](RankMessage kind, std::string payload) {
          receive(kind, std::move(payload));
        });
  } else if (count == 0 || errno != EINTR) {
    close_pipe();
  }
}

bool RankChild::poll_exit() {
  // The leader is left unburied until its group is gone, so that its id cannot
  // belong to anybody else.
  siginfo_t info{};
  if (!ended_ &&
      ::waitid(
          P_PID,
          static_cast<id_t>(pid_),
          &info,
          WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    signal_group(SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    outcome_.status = WIFSIGNALED(status)
        ? comm::ExitStatus{0, WTERMSIG(status)}
        : comm::ExitStatus{WEXITSTATUS(status), 0};
  }
  return ended_;
}

void RankChild::signal_group(int signal) const {
  ::kill(-pid_, signal);
}

void RankChild::receive(RankMessage kind, std::string payload) {
  switch (kind) {
    case RankMessage::kDoing:
      outcome_.last_doing = std::move(payload);
      break;
    case RankMessage::kResult:
      outcome_.result = deserialize(payload);
      break;
    case RankMessage::kError:
      outcome_.error = std::move(payload);
      break;
  }
}

void RankChild::close_pipe() {
  if (pipe_ >= 0) {
    ::close(pipe_);
    pipe_ = -1;
  }
}

} // namespace tandem::testing::detail
