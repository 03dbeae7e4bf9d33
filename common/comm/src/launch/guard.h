#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

#include "file_descriptor.h"

namespace tandem::comm::launch {

/// A small process that outlives this one by a moment: when this one is gone,
/// killed or not, it sends SIGKILL to the process groups that were announced
/// and not forgotten, and removes files.
///
/// It blocks on a socket whose other end only this process holds, and children
/// of it until they run their program. It is in a session of its own, so a
/// terminal's signals do not reach it.
class Guard {
 public:
  /// `num_groups`: how many will be announced at most, without those forgotten.
  /// `paths`: files and empty folders to remove, in this order.
  /// **Throws** `Error`.
  Guard(std::size_t num_groups, const std::vector<std::string>& paths);
  /// Lets it end the groups that were not forgotten, and waits for its end.
  ~Guard();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  /// Called by the child that leads the group, between fork and exec: so there
  /// is no moment at which a rank runs unguarded.
  void announce(pid_t group) const noexcept;
  /// `group` is empty: its number may soon be another's.
  void forget(pid_t group) const noexcept;

 private:
  FileDescriptor socket_;
  pid_t pid_ = -1;
};

} // namespace tandem::comm::launch
