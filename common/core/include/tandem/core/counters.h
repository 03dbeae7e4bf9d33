#pragma once

#include <cstdint>

namespace tandem {

/// What a wrapper has moved since it was built.
struct Counters {
  /// Forward calls.
  int64_t forwards = 0;
  /// Bytes handed to collectives or copied between devices by the wrapper.
  int64_t bytes_moved = 0;
  /// Collectives issued.
  int64_t collectives = 0;
  /// Copies between devices issued by the wrapper.
  int64_t copies = 0;
};

} // namespace tandem
