#pragma once

#include <string>

#include "file_descriptor.h"
#include "line_prefixer.h"
#include "output_queue.h"

namespace tandem::comm::launch {

/// A rank's stdout or stderr on its way to a queue.
class RankStream {
 public:
  /// `pipe` does not block. `out` and `tail` outlive this object.
  RankStream(
      FileDescriptor pipe,
      std::string prefix,
      LineTail& tail,
      OutputQueue& out);

  /// The pipe, -1 after its end; poll it while `out` is not full.
  int fd() const {
    return pipe_.get();
  }
  OutputQueue& out() const {
    return out_;
  }
  /// Passes on some of what the pipe holds; false if that was nothing.
  bool pass_on();
  /// Passes on all that it holds.
  void pass_on_all();
  /// Passes on all, the unfinished last line too, and closes the pipe.
  void finish();

 private:
  FileDescriptor pipe_;
  LinePrefixer prefixer_;
  OutputQueue& out_;
};

} // namespace tandem::comm::launch
