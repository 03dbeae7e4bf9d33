#pragma once

#include <set>
#include <string>
#include <vector>

#include "vector_clock.h"

namespace tandem::sim {

struct ByteRange {
  int64_t begin;
  int64_t end;
};

enum class UseKind : uint8_t { kRead, kWrite };

/// What one work of a stream does to bytes of a block.
struct Use {
  ByteRange bytes;
  UseKind kind;
  size_t stream;
  int64_t time;
  std::string operator_name;
};

/// The uses of one block of memory that later ones must come after. **Threads**:
/// one at a time.
class UseLog {
 public:
  /// `stream`: the current one when the block was allocated.
  explicit UseLog(size_t stream) : stream_(stream) {}

  size_t stream() const {
    return stream_;
  }

  /// A use that one of this kind must come after, as reads after writes and
  /// writes after both, but which `clock` does not know; null if there is none.
  const Use* find_unordered(
      ByteRange bytes,
      UseKind kind,
      const VectorClock& clock) const;

  /// `clock`: what `use` comes after. Forgets uses that are implied from now
  /// on, so that the log does not grow from step to step.
  void add(Use use, const VectorClock& clock);

  /// Uses by `stream` do not hinder that the block is freed.
  void record_stream(size_t stream) {
    recorded_streams_.insert(stream);
  }

  /// The uses by others than the block's own stream and the recorded ones.
  std::vector<Use> foreign_uses() const;

 private:
  size_t stream_;
  std::vector<Use> uses_;
  std::set<size_t> recorded_streams_;
};

} // namespace tandem::sim
