#include "tandem_catch.h"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "launch/failure_order.h"

namespace {

using tandem::comm::RankFailure;
using namespace std::chrono_literals;

RankFailure failure(
    int64_t rank,
    std::chrono::milliseconds time,
    const std::string& error = "",
    int signal = 0) {
  RankFailure result;
  result.rank = rank;
  result.time = std::chrono::system_clock::time_point(time);
  result.error = error;
  result.status = {signal == 0 ? 1 : 0, signal};
  return result;
}

std::vector<int64_t> order_of(std::vector<RankFailure> failures) {
  tandem::comm::launch::sort_by_cause(failures);
  std::vector<int64_t> ranks;
  for (const auto& sorted : failures) {
    ranks.push_back(sorted.rank);
  }
  return ranks;
}

} // namespace

TEST_CASE("sort_by_cause puts the failure that was first first", "[launch]") {
  CHECK(
      order_of({failure(0, 3s, "a"), failure(1, 1s, "b"), failure(2, 2s)}) ==
      std::vector<int64_t>{1, 2, 0});
}

TEST_CASE("sort_by_cause blames no rank that only lost a peer", "[launch]") {
  CHECK(
      order_of(
          {failure(0, 1s, "PeerError: rank 2 is gone"),
           failure(1, 2s, "TimeoutError: rank 2 did not answer"),
           failure(2, 3s, "ConfigError: what happened")}) ==
      std::vector<int64_t>{2, 0, 1});
  CHECK(
      order_of(
          {failure(1, 2s, "TimeoutError: x"),
           failure(0, 1s, "PeerError: y")}) == std::vector<int64_t>{0, 1});
}

TEST_CASE(
    "sort_by_cause puts a kill before the errors of those that saw it",
    "[launch]") {
  CHECK(
      order_of(
          {failure(0, 1000ms, "RuntimeError: connection closed"),
           failure(1, 1050ms, "", SIGKILL)}) == std::vector<int64_t>{1, 0});
  CHECK(
      order_of(
          {failure(0, 1000ms, "RuntimeError: own"),
           failure(1, 1500ms, "", SIGSEGV)}) == std::vector<int64_t>{0, 1});
}
