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
///
/// Lives in the store of a group and is taken once: after it the group is of no
/// more use. No function throws.
struct RollCallResult {
  /// Ranks that did not answer.
  std::vector<int64_t> missing;
  /// Some rank's collective ran into its time limit.
  bool timed_out = false;
  /// The store did not answer either.
  bool store_lost = false;
};

class RollCall {
 public:
  RollCall(c10d::Store& store, int64_t rank, int64_t size);

  /// Says that a collective of this rank failed.
  void answer(bool timed_out) noexcept;
  /// True once any rank has answered; a lost store is a yes.
  bool began() noexcept;
  /// Waits up to a second for all ranks' answers.
  RollCallResult take() noexcept;

 private:
  c10d::Store& store_;
  int64_t rank_;
  std::vector<int64_t> ranks_;
};

} // namespace tandem::comm
