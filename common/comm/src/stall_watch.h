#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// Note [Stall]
/// A rank that waits cannot see for whom. So the first one that has waited for
/// the limit says so in the store; every rank that waits for the same
/// collective looks there now and then, and says that it waits too. A moment
/// later the lowest of these ranks warns of those that have said nothing.
///
/// Warns once, so that a slow job is not flooded.
class StallWatch {
 public:
  /// Zero: never warns.
  explicit StallWatch(std::chrono::milliseconds limit) : limit_(limit) {}

  /// False once nothing is to be looked for any more.
  bool is_on() const {
    return limit_.count() > 0;
  }
  /// How long to wait between two looks.
  std::chrono::milliseconds interval() const;

  /// A collective that is waited for.
  struct Wait {
    c10::intrusive_ptr<c10d::Store> store;
    int64_t rank;
    int64_t size;
    /// Names the collective, the same on all ranks.
    std::string key;
    std::chrono::milliseconds waited;
  };
  /// Nothing to say is an empty text; else the end of the warning: "expected
  /// every rank within 10 s, still no sign of rank 1". **Throws** nothing.
  std::string look(const Wait& wait) noexcept;

 private:
  std::chrono::milliseconds limit_;
};

} // namespace tandem::comm
