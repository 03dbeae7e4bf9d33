#include "guard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tandem::comm::launch {

namespace {

// Nothing of the parent's may stay open in the guard: a reader of its output
// would wait for the guard too.
void keep_only(int socket) {
  ::dup2(socket, 0);
  ::close_range(1, ~0U, 0);
}

bool receive(pid_t& message) {
  ssize_t size = 0;
  do {
    size = ::recv(0, &message, sizeof message, 0);
  } while (size == -1 && errno == EINTR);
  return size == sizeof message;
}

// Runs between fork and _exit in a process that may have had threads: calls
// only what is safe in a signal handler, and `groups` was allocated before.
[[noreturn]] void watch_groups(
    int socket,
    std::vector<pid_t>& groups,
    const std::vector<std::string>& paths) {
  ::setsid();
  sigset_t all{};
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_NAME, "tandem-guard");
  keep_only(socket);
  auto end = groups.begin();
  for (pid_t message = 0; receive(message);) {
    if (message < 0) {
      end = std::remove(groups.begin(), end, -message);
    } else if (end != groups.end()) {
      *end++ = message;
    }
  }
  std::for_each(groups.begin(), end, [](pid_t group) {
    ::kill(-group, SIGKILL);
  });
  for (const auto& path : paths) {
    if (::unlink(path.c_str()) != 0) {
      ::rmdir(path.c_str());
    }
  }
  ::_exit(0);
}

} // namespace

Guard::Guard(std::size_t num_groups, const std::vector<std::string>& paths) {
  std::array<int, 2> ends{};
  // Messages, each whole; and a reader that was killed is no SIGPIPE.
  checked(
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()),
      "socketpair");
  FileDescriptor guards_end(ends[0]);
  socket_ = FileDescriptor(ends[1]);
  std::vector<pid_t> groups(num_groups);
  pid_ = checked(::fork(), "fork");
  if (pid_ == 0) {
    watch_groups(guards_end.get(), groups, paths);
  }
}

Guard::~Guard() {
  socket_.reset();
  while (::waitpid(pid_, nullptr, 0) == -1 && errno == EINTR) {
  }
}

void Guard::announce(pid_t group) const noexcept {
  ::send(socket_.get(), &group, sizeof group, MSG_NOSIGNAL);
}

void Guard::forget(pid_t group) const noexcept {
  announce(-group);
}

} // namespace tandem::comm::launch
