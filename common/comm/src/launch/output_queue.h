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
    return num_unsent() == 0;
  }
  /// True when ranks had better wait.
  bool full() const;
  /// To be called when `fd` can be written to. Drops everything if nobody reads
  /// any more.
  void write_some();

 private:
  std::size_t num_unsent() const {
    return text_.size() - sent_;
  }

  int fd_;
  std::string text_;
  std::size_t sent_ = 0; // bytes at the front of `text_`, removed in bulk
};

} // namespace tandem::comm::launch
