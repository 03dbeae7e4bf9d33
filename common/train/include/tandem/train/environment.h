#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tandem::train {

/// Where a measurement was made.
struct Environment {
  /// Versions.
  std::string tandem;
  std::string torch;
  std::optional<std::string> nccl;
  /// Model of the processor, as Linux names it; empty if it does not.
  std::string cpu;
  /// Processors that this process may use.
  int64_t cores = 0;
  /// Intra-op threads of each worker.
  int64_t threads_per_worker = 0;
};

/// Of this process, now; `nccl` is left for callers that know it.
Environment current_environment();

/// The most memory that this process has had resident so far (VmHWM), in bytes.
/// **Throws** `Error` if /proc does not tell.
int64_t peak_resident_bytes();

/// What is resident now is the peak from now on, where the system lets a
/// process say so (/proc/self/clear_refs).
void reset_peak_resident_bytes();

} // namespace tandem::train
