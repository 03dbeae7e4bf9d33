#include "block_cache.h"

#include "tandem_catch.h"

namespace tandem::sim_test {

namespace {

constexpr size_t kMiB = size_t{1} << 20;

} // namespace

TEST_CASE("a freed block serves the next of its size, no other", "[sim]") {
  sim::BlockCache cache;
  void* const first = cache.allocate(kMiB);
  cache.free(first, kMiB);
  REQUIRE(cache.kept_bytes() == kMiB);
  void* const larger = cache.allocate(2 * kMiB);
  CHECK(larger != first);
  CHECK(cache.kept_bytes() == kMiB);
  void* const again = cache.allocate(kMiB - 1);
  CHECK(again == first);
  CHECK(cache.kept_bytes() == 0);
  cache.free(again, kMiB - 1);
  cache.free(larger, 2 * kMiB);
  CHECK(cache.kept_bytes() == 3 * kMiB);
  cache.clear();
  CHECK(cache.kept_bytes() == 0);
}

TEST_CASE("a block is at most an eighth larger than what was asked", "[sim]") {
  sim::BlockCache cache;
  for (size_t num_bytes = 64 << 10; num_bytes < kMiB; num_bytes += 12345) {
    cache.free(cache.allocate(num_bytes), num_bytes);
    CHECK(cache.kept_bytes() >= num_bytes);
    CHECK(cache.kept_bytes() <= num_bytes + num_bytes / 8);
    cache.clear();
  }
}

TEST_CASE("small blocks are left to the C++ library", "[sim]") {
  sim::BlockCache cache;
  cache.free(cache.allocate(1000), 1000);
  CHECK(cache.kept_bytes() == 0);
}

} // namespace tandem::sim_test
