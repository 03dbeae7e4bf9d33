#include "vector_clock.h"

#include <algorithm>

namespace tandem::sim {

void VectorClock::set(size_t stream, int64_t time) {
  if (stream >= times_.size()) {
    times_.resize(stream + 1);
  }
  times_[stream] = time;
}

void VectorClock::merge(const VectorClock& other) {
  times_.resize(std::max(times_.size(), other.times_.size()));
  for (size_t stream = 0; stream < other.times_.size(); ++stream) {
    times_[stream] = std::max(times_[stream], other.times_[stream]);
  }
}

} // namespace tandem::sim
