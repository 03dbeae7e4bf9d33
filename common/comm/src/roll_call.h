#pragma once

#include <cstdint>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// Note [Roll call]
/// A transport's error says that a connection broke, not which rank is to
/// blame. So each rank whose collective failed leaves its mark in the store,
/// aborts what it has in flight (which makes the peers' collectives fail too)
/// and waits a moment for the marks of the others. A rank without a mark has
/// died, hangs, or never came to the collective.
struct RollCall {
  /// Ranks that did not answer.
  std::vector<int64_t> missing;
  /// Some rank's collective ran into its time limit.
  bool timed_out = false;
  /// The store did not answer either.
  bool store_lost = false;
};

/// Says that a collective of this rank failed. **Throws** nothing.
void answer_roll_call(
    c10d::Store& store,
    int64_t rank,
    bool timed_out) noexcept;

/// True once any rank has answered. **Throws** nothing; a lost store is a yes.
bool roll_call_began(c10d::Store& store) noexcept;

/// Waits up to a second for all ranks' answers. **Throws** nothing.
RollCall take_roll_call(
    c10d::Store& store,
    int64_t rank,
    int64_t size) noexcept;

} // namespace tandem::comm
