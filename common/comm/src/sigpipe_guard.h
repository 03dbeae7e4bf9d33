#pragma once

#include <csignal>

namespace tandem::comm {

/// Keeps SIGPIPE from the calling thread, and for good from the threads that it
/// starts, while it lives.
///
/// Gloo and the store's server write to sockets that a dead peer has closed,
/// and would take the process with it: Python ignores the signal, C++ programs
/// do not. A library must not change what a signal does in the whole process,
/// but threads inherit the mask of the one that starts them.
class SigpipeGuard {
 public:
  SigpipeGuard();
  /// Drops a SIGPIPE that came meanwhile.
  ~SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t previous_{};
  bool was_pending_ = false;
};

} // namespace tandem::comm
