#pragma once

#include <csignal>
#include <vector>

#include "file_descriptor.h"

namespace tandem::comm::launch {

/// Turns SIGINT, SIGTERM and SIGCHLD into readable input, until destroyed. A
/// signal that was ignored before stays so, except SIGCHLD, whose default is
/// restored: else the kernel would not keep exit codes.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  /// Readable when `take` has something to return.
  int fd() const {
    return fd_.get();
  }
  /// The signals since the last call.
  std::vector<int> take();
  /// What children have to restore before they run their program.
  const sigset_t& previous_mask() const {
    return previous_mask_;
  }

 private:
  FileDescriptor fd_;
  sigset_t previous_mask_{};
  struct sigaction previous_child_action_ {};
};

} // namespace tandem::comm::launch
