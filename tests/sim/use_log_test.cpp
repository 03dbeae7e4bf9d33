#include "use_log.h"

#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

using sim::ByteRange;
using sim::Use;
using sim::UseKind;
using sim::UseLog;
using sim::VectorClock;

/// Comes after the first `times[s]` works of each stream s.
VectorClock clock_of(const std::vector<int64_t>& times) {
  VectorClock clock;
  for (size_t stream = 0; stream < times.size(); ++stream) {
    clock.set(stream, times[stream]);
  }
  return clock;
}

Use use(ByteRange bytes, UseKind kind, size_t stream, int64_t time) {
  return {bytes, kind, stream, time, "work"};
}

bool ordered(
    const UseLog& log,
    ByteRange bytes,
    UseKind kind,
    const std::vector<int64_t>& times) {
  return log.find_unordered(bytes, kind, clock_of(times)) == nullptr;
}

} // namespace

TEST_CASE("a vector clock knows the later of two times", "[sim]") {
  auto clock = clock_of({3, 1});
  clock.merge(clock_of({2, 5, 4}));
  CHECK(clock.at(0) == 3);
  CHECK(clock.at(1) == 5);
  CHECK(clock.at(2) == 4);
  CHECK(clock.at(9) == 0);
}

TEST_CASE("a use log orders reads after writes, writes after both", "[sim]") {
  UseLog log(0);
  log.add(use({0, 8}, UseKind::kWrite, 0, 1), clock_of({1}));
  CHECK(ordered(log, {0, 8}, UseKind::kRead, {1, 0}));
  CHECK_FALSE(ordered(log, {0, 8}, UseKind::kRead, {0, 9}));
  log.add(use({0, 8}, UseKind::kRead, 1, 1), clock_of({1, 1}));
  CHECK(ordered(log, {0, 8}, UseKind::kRead, {1, 0}));
  CHECK_FALSE(ordered(log, {0, 8}, UseKind::kWrite, {1, 0}));
  CHECK(ordered(log, {0, 8}, UseKind::kWrite, {1, 1}));
}

TEST_CASE("a use log tells ranges of bytes apart", "[sim]") {
  UseLog log(0);
  log.add(use({8, 16}, UseKind::kWrite, 0, 1), clock_of({1}));
  CHECK(ordered(log, {0, 8}, UseKind::kWrite, {0, 1}));
  CHECK(ordered(log, {16, 20}, UseKind::kWrite, {0, 1}));
  CHECK_FALSE(ordered(log, {0, 9}, UseKind::kWrite, {0, 1}));
  CHECK_FALSE(ordered(log, {15, 20}, UseKind::kRead, {0, 1}));
}

TEST_CASE("a use log forgets what later uses imply", "[sim]") {
  // A block of stream 9, so that all uses are foreign to it.
  UseLog log(9);
  log.add(use({0, 8}, UseKind::kWrite, 0, 1), clock_of({1}));
  log.add(use({0, 4}, UseKind::kRead, 1, 1), clock_of({1, 1}));
  log.add(use({0, 8}, UseKind::kRead, 1, 2), clock_of({1, 2}));
  CHECK(log.foreign_uses().size() == 2); // the write and the second read
  log.add(use({0, 8}, UseKind::kWrite, 0, 2), clock_of({2, 2}));
  CHECK(log.foreign_uses().size() == 1);
  // One that knows nothing of the last implies nothing.
  log.add(use({0, 8}, UseKind::kRead, 2, 1), clock_of({0, 0, 1}));
  CHECK(log.foreign_uses().size() == 2);
  log.record_stream(2);
  CHECK(log.foreign_uses().size() == 1);
}

} // namespace tandem::sim_test
