#pragma once

#include <deque>
#include <unordered_map>

#include <c10/core/Stream.h>

#include "vector_clock.h"

namespace tandem::sim {

/// The clocks of all streams and of the host. **Threads**: one at a time.
class StreamClocks {
 public:
  /// The number of `stream`, given at its first use.
  size_t index_of(const c10::Stream& stream);

  /// "sim:0 stream 3"
  std::string name_of(size_t stream) const;

  /// All that the stream's next work comes after.
  const VectorClock& next_work(size_t stream);

  /// One more work on the stream, whose time this returns.
  int64_t add_work(size_t stream);

  /// Later work of the stream comes after `clock`.
  void wait(size_t stream, const VectorClock& clock);

  /// Later work of all streams comes after `clock`.
  void host_wait(const VectorClock& clock);
  void host_wait_for_device(c10::DeviceIndex device);

 private:
  struct State {
    c10::Stream stream;
    VectorClock clock;
    int64_t num_works = 0;
  };

  std::unordered_map<c10::Stream, size_t> indices_;
  std::deque<State> states_;
  VectorClock host_;
};

} // namespace tandem::sim
