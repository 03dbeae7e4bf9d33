#pragma once

#include <string>
#include <utility>

namespace tandem::comm::launch {

/// Owns an open file descriptor, or none.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    reset();
  }
  FileDescriptor(FileDescriptor&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }

  int get() const {
    return fd_;
  }
  explicit operator bool() const {
    return fd_ >= 0;
  }
  /// Closes it.
  void reset();
  /// Gives it away.
  int release() {
    return std::exchange(fd_, -1);
  }

 private:
  int fd_ = -1;
};

/// Both ends are closed on exec.
struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

/// **Throws** `Error`.
Pipe make_pipe();

/// Returns what a system call returned.
/// **Throws** `Error` with `call` and errno's text if that is -1.
int checked(int result, const std::string& call);

} // namespace tandem::comm::launch
