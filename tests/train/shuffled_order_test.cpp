#include <tandem/train/shuffled_order.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "tandem_catch.h"

using tandem::train::shuffled_order;

// From an implementation in another language of what the header documents.
TEST_CASE(
    "the order of 16 samples is the one that was published for each seed and "
    "epoch",
    "[train][SMP-04]") {
  CHECK(
      shuffled_order(16, 1, 0) ==
      std::vector<
          size_t>{1, 9, 12, 3, 2, 11, 4, 10, 8, 14, 0, 7, 5, 15, 13, 6});
  CHECK(
      shuffled_order(16, 1, 1) ==
      std::vector<
          size_t>{6, 10, 15, 0, 9, 8, 4, 2, 3, 5, 7, 14, 11, 1, 12, 13});
  CHECK(
      shuffled_order(16, 2, 0) ==
      std::vector<
          size_t>{4, 2, 6, 3, 15, 0, 7, 9, 5, 10, 13, 8, 11, 14, 12, 1});
}

TEST_CASE("a shuffled order holds every number once", "[train][SMP-04]") {
  for (const size_t size : {0, 1, 2, 3, 101, 60000}) {
    auto order = shuffled_order(size, 7, 3);
    std::sort(order.begin(), order.end());
    std::vector<size_t> expected(size);
    std::iota(expected.begin(), expected.end(), size_t{0});
    CHECK(order == expected);
  }
}

TEST_CASE(
    "every number is as often at the front as another",
    "[train][SMP-04]") {
  constexpr size_t size = 5;
  constexpr int epochs = 5000;
  std::vector<int> first(size);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    ++first[shuffled_order(size, 0, epoch).front()];
  }
  // 1000 each, with a standard deviation of 28.
  for (const int count : first) {
    CHECK(std::abs(count - epochs / 5) < 150);
  }
}
