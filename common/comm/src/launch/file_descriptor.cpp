#include "file_descriptor.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <tandem/core/errors.h>

namespace tandem::comm::launch {

void FileDescriptor::reset() {
  if (fd_ >= 0) {
    ::close(std::exchange(fd_, -1));
  }
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  checked(::pipe2(ends.data(), O_CLOEXEC), "pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

int checked(int result, const std::string& call) {
  if (result == -1) {
    throw Error(fmt::format("[launch] {}: {}", call, std::strerror(errno)));
  }
  return result;
}

} // namespace tandem::comm::launch
