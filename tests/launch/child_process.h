#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launch/file_descriptor.h"

namespace tandem::test {

using comm::launch::FileDescriptor;

/// How long a test waits for what must happen; every wait has this limit.
inline constexpr auto kPatience = std::chrono::seconds(30);

/// A handle on any process, a child or not, that stays valid after its end.
class ProcessHandle {
 public:
  explicit ProcessHandle(pid_t pid);

  pid_t pid() const {
    return pid_;
  }
  /// False if it is still there after `limit`.
  bool gone_within(std::chrono::milliseconds limit) const;
  int fd() const {
    return fd_.get();
  }

 private:
  pid_t pid_;
  FileDescriptor fd_;
};

/// Direct children of a process, by its threads' lists.
std::vector<pid_t> children_of(pid_t pid);

/// A program with its stdout and stderr caught. Killed by the destructor.
class ChildProcess {
 public:
  /// `unset`: variables that it does not inherit.
  explicit ChildProcess(
      const std::vector<std::string>& command,
      const std::vector<std::string>& unset = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const {
    return handle_.pid();
  }
  void signal(int number) const;
  /// Lets its stdout fill up from now on, so that a writer who blocks is stuck.
  void leave_out_unread() {
    reads_out_ = false;
  }
  /// Reads until `done` holds for what came so far. Throws after `limit`, or if
  /// both streams end before.
  void read_until(
      const std::function<bool()>& done,
      std::chrono::milliseconds limit = kPatience);
  /// Reads to the end of both streams, and returns what a shell returns for it.
  /// Throws after `limit`.
  int wait(std::chrono::milliseconds limit = kPatience);

  const std::string& out() const {
    return out_;
  }
  const std::string& err() const {
    return err_;
  }

 private:
  // Waits for output and takes it; false when all that is read has ended.
  bool pump(std::chrono::steady_clock::time_point deadline);

  comm::launch::Pipe out_pipe_;
  comm::launch::Pipe err_pipe_;
  ProcessHandle handle_;
  std::string out_;
  std::string err_;
  bool reads_out_ = true;
  bool reaped_ = false;
};

/// The numbers that follow `word` in `text`.
std::vector<pid_t> numbers_after(
    const std::string& word,
    const std::string& text);

/// How often `part` is in `text`.
int count_of(const std::string& part, const std::string& text);

} // namespace tandem::test
