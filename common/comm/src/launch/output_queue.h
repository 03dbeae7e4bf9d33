#pragma once

#include <cstddef>
#include <string>

namespace tandem::comm::launch {

/// Text on its way to a descriptor that may be slow (a pager, a pipe). It is
/// written only when poll says so, hence never blocks, and whole lines at a
/// time where they fit a pipe's buffer page.
class OutputQueue {
 public:
  /// Does not own `fd`.
  explicit OutputQueue(int fd) : fd_(fd) {}

  int fd() const {
    return fd_;
  }
  /// Where to append.
  std::string& text() {
    return text_;
  }
  bool empty() const {
    return text_.empty();
  }
  /// True when ranks had better wait.
  bool full() const;
  /// To be called when `fd` can be written to. Drops everything if nobody reads
  /// any more.
  void write_some();

 private:
  int fd_;
  std::string text_;
};

} // namespace tandem::comm::launch
