#include "coordination.h"

namespace tandem::comm::launch {

Finish interrupted_before_start(int signal) {
  Finish finish;
  finish.result.interrupted_by = signal;
  finish.result.exit_code = ExitStatus{0, signal}.shell_code();
  return finish;
}

} // namespace tandem::comm::launch
