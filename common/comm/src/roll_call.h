#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tandem::comm {

/// Set in the store of a group once any rank has answered.
inline constexpr const char* kRollCallBeganKey = "roll_call/began";

/// Note [Roll call]
/// A transport's error says that a connection broke, not which rank is to
/// blame. So each rank whose collective failed leaves its mark in the store,
/// aborts what it has in flight (which makes the peers' collectives fail too)
/// and waits a moment for the marks of the others. A rank without a mark has
/// died, hangs, or never came to the collective.
///
/// Lives in the store of a group and is taken once: after it the group is of no
/// more use. No function throws.
/// A store that does not answer soon is lost too: its host may have been
/// stopped.
struct RollCallResult {
  /// Ranks that did not answer.
  std::vector<int64_t> missing;
  /// Some rank's collective ran into its time limit.
  bool timed_out = false;
  /// The store did not answer either.
  bool store_lost = false;
  /// Where each rank was that answered.
  std::map<int64_t, std::string> positions;
};

/// ". At that time rank 0 was at X; ranks 2 and 3 were at Y", naming at most four
/// places; empty for none.
std::string describe_positions(const std::map<int64_t, std::string>& positions);

class RollCall {
 public:
  RollCall(c10::intrusive_ptr<c10d::Store> store, int64_t rank, int64_t size);

  /// Says that a collective of this rank failed, and where it was then.
  void answer(bool timed_out, const std::string& position) noexcept;
  /// True once any rank has answered; a lost store is a yes.
  bool began() noexcept;
  /// Waits up to a second for all ranks' answers.
  RollCallResult take() noexcept;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
  int64_t rank_;
  std::vector<int64_t> ranks_;
  bool is_store_lost_ = false;
};

} // namespace tandem::comm
