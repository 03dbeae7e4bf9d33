#pragma once

#include <optional>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

namespace tandem::detail {

/// Orders work that hooks enqueue from several streams of one device into the
/// same buffers: each stream waits for the one used before it.
class StreamOrder {
 public:
  /// Makes the device's current stream wait for the last one that joined. Does
  /// nothing on the CPU, which has no streams.
  void join_current(at::Device device);

  void restart() {
    last_.reset();
  }

 private:
  std::optional<c10::Stream> last_;
};

} // namespace tandem::detail
