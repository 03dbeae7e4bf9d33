#include <tandem/core/bucket_plan.h>

#include "tandem_catch.h"

namespace {

using Buckets = std::vector<std::vector<size_t>>;

constexpr int64_t kFloatType = 0;
constexpr int64_t kDoubleType = 1;

tandem::BucketItem floats(int64_t numel) {
  return {numel * 4, kFloatType};
}

tandem::BucketItem doubles(int64_t numel) {
  return {numel * 8, kDoubleType};
}

/// Of 200 bytes each, the types in turn.
std::vector<tandem::BucketItem> mixed_items() {
  return {
      floats(50),
      doubles(25),
      floats(50),
      doubles(25),
      floats(50),
      doubles(25)};
}

} // namespace

TEST_CASE(
    "bucket plan closes a bucket that reached its cap",
    "[core][DDP-19]") {
  CHECK(
      tandem::plan_buckets(
          {floats(100), floats(200), floats(100), floats(50)},
          {400}) == Buckets{{0}, {1}, {2}, {3}});
}

TEST_CASE("bucket plan keeps types apart", "[core][DDP-19]") {
  CHECK(
      tandem::plan_buckets(mixed_items(), {400}) ==
      Buckets{{0, 2}, {1, 3}, {4}, {5}});
}

TEST_CASE("bucket plan takes the next cap after the first", "[core][DDP-19]") {
  const std::vector<tandem::BucketItem> tens(4, floats(10));
  CHECK(tandem::plan_buckets(tens, {40, 80}) == Buckets{{0}, {1, 2}, {3}});
}

TEST_CASE("bucket plan counts caps for each type", "[core][DDP-19]") {
  CHECK(
      tandem::plan_buckets(mixed_items(), {200, 400}) ==
      Buckets{{0}, {1}, {2, 4}, {3, 5}});
}

TEST_CASE("bucket plan of nothing is empty", "[core][DDP-19]") {
  CHECK(tandem::plan_buckets({}, {1}).empty());
}
