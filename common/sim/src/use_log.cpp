#include "use_log.h"

#include <algorithm>
#include <iterator>

namespace tandem::sim {

namespace {

bool overlap(ByteRange left, ByteRange right) {
  return left.begin < right.end && right.begin < left.end;
}

bool contains(ByteRange outer, ByteRange inner) {
  return outer.begin <= inner.begin && inner.end <= outer.end;
}

bool knows(const VectorClock& clock, const Use& use) {
  return clock.at(use.stream) >= use.time;
}

} // namespace

const Use* UseLog::find_unordered(
    ByteRange bytes,
    UseKind kind,
    const VectorClock& clock) const {
  const auto found =
      std::find_if(uses_.begin(), uses_.end(), [&](const Use& use) {
        const bool conflict =
            kind == UseKind::kWrite || use.kind == UseKind::kWrite;
        return conflict && overlap(use.bytes, bytes) && !knows(clock, use);
      });
  return found == uses_.end() ? nullptr : &*found;
}

void UseLog::add(Use use, const VectorClock& clock) {
  // What comes after the new use comes after these, too. What comes after a
  // read need not come after it: an earlier write must be kept.
  std::erase_if(uses_, [&](const Use& earlier) {
    const bool implied =
        use.kind == UseKind::kWrite || earlier.kind == UseKind::kRead;
    return implied && contains(use.bytes, earlier.bytes) &&
        knows(clock, earlier);
  });
  uses_.push_back(std::move(use));
}

std::vector<Use> UseLog::foreign_uses() const {
  std::vector<Use> foreign;
  std::copy_if(
      uses_.begin(),
      uses_.end(),
      std::back_inserter(foreign),
      [&](const Use& use) {
        return use.stream != stream_ &&
            recorded_streams_.count(use.stream) == 0;
      });
  return foreign;
}

} // namespace tandem::sim
