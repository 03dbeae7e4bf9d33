#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::sim {

/// How far along each stream something comes after: see Note [Hazards]. Streams
/// are numbers from 0 on, their works have the times 1, 2, ...
class VectorClock {
 public:
  /// The last work of `stream` that is known to come before; 0: none.
  int64_t at(size_t stream) const {
    return stream < times_.size() ? times_[stream] : 0;
  }
  /// **Requires**: `time` is not before `at(stream)`.
  void set(size_t stream, int64_t time);
  /// Comes after all that `other` comes after, too.
  void merge(const VectorClock& other);

 private:
  std::vector<int64_t> times_;
};

} // namespace tandem::sim
