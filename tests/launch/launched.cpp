#include "launched.h"

#include <cstddef>
#include <stdexcept>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "launch/file_descriptor.h"

namespace tandem::test {

namespace {

// A file in memory.
class CaughtOutput {
 public:
  CaughtOutput() : file_(::memfd_create("caught", MFD_CLOEXEC)) {}
  int fd() const {
    return file_.get();
  }
  std::string text() const {
    std::string result(static_cast<std::size_t>(::lseek(fd(), 0, SEEK_END)), 0);
    const auto size = ::pread(fd(), result.data(), result.size(), 0);
    if (!std::cmp_equal(size, result.size())) {
      throw std::runtime_error("cannot read the caught output");
    }
    return result;
  }

 private:
  comm::launch::FileDescriptor file_;
};

} // namespace

Launched launch_caught(comm::LaunchOptions options) {
  const CaughtOutput out;
  const CaughtOutput err;
  options.output_fd(out.fd()).error_fd(err.fd());
  auto result = comm::launch_local(options);
  return {std::move(result), out.text(), err.text()};
}

Launched launch_caught(
    int64_t num_ranks,
    std::vector<std::string> command,
    std::chrono::milliseconds grace,
    const comm::Environment& environment) {
  return launch_caught(comm::LaunchOptions(num_ranks, std::move(command))
                           .environment(environment)
                           .grace(grace));
}

std::vector<std::string> rank_program(std::vector<std::string> actions) {
  actions.insert(actions.begin(), TANDEM_RANK_PROGRAM);
  return actions;
}

std::vector<std::string> sh(const std::string& script) {
  return {"sh", "-c", script};
}

} // namespace tandem::test
