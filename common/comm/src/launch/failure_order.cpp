#include "failure_order.h"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace tandem::comm::launch {

namespace {

// A rank that was killed wrote no time. Others notice its end as soon as the
// launcher does, and may be seen first.
constexpr auto kKillNoticed = std::chrono::milliseconds(100);

bool blames_a_peer(const RankFailure& failure) {
  return failure.error.starts_with("PeerError: ") ||
      failure.error.starts_with("TimeoutError: ");
}

auto order_key(const RankFailure& failure) {
  const bool unseen = failure.error.empty() && failure.status.signal != 0;
  return std::tuple(
      blames_a_peer(failure),
      unseen ? failure.time - kKillNoticed : failure.time,
      failure.rank);
}

} // namespace

void sort_by_cause(std::vector<RankFailure>& failures) {
  std::sort(
      failures.begin(),
      failures.end(),
      [](const RankFailure& a, const RankFailure& b) {
        return order_key(a) < order_key(b);
      });
}

} // namespace tandem::comm::launch
