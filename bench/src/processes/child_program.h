#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "commands.h"

namespace tandem::bench {

/// Path of the running program.
std::string program_path();

/// This program, running once more in a process of its own with the same
/// standard streams. The destructor ends it with SIGTERM if it still runs, and
/// waits for it.
class ChildProgram {
 public:
  /// Starts it with `arguments` after its name.
  /// **Throws** `Error` if the system refuses.
  explicit ChildProgram(const CommandLine& arguments);
  ~ChildProgram();
  ChildProgram(const ChildProgram&) = delete;
  ChildProgram& operator=(const ChildProgram&) = delete;

  /// Its exit code as a shell would return it; nothing while it runs.
  std::optional<int> exit_code();
  /// Likewise, after waiting for its end.
  int wait();

 private:
  void reap(int wait_options);

  pid_t pid_ = 0;
  std::optional<int> exit_code_;
};

/// Has this process end by SIGTERM when the one that started it does, however
/// that ends.
void end_with_parent();

} // namespace tandem::bench
