#include "harness/flop_counter.h"

#include <thread>

#include <torch/nn/functional/conv.h>

#include "tandem_catch.h"

using tandem::bench::count_flops;

TEST_CASE("operations of products and convolutions are counted", "[bench]") {
  const auto a = torch::ones({2, 3});
  const auto b = torch::ones({3, 5});
  const int64_t product = 2 * 2 * 3 * 5;
  CHECK(count_flops([&] { a.mm(b); }) == product);
  CHECK(count_flops([&] { a.matmul(b).relu().sum(); }) == product);
  CHECK(count_flops([&] { torch::addmm(torch::ones({5}), a, b); }) == product);
  CHECK(count_flops([&] {
          torch::nn::functional::conv2d(
              torch::ones({1, 1, 4, 4}),
              torch::ones({6, 1, 3, 3}));
        }) == 2 * 6 * 2 * 2 * 3 * 3);
  CHECK(count_flops([] {}) == 0);
}

TEST_CASE("operations on other threads are counted too", "[bench]") {
  const auto a = torch::ones({4, 4});
  CHECK(count_flops([&] {
          std::thread([&] { a.mm(a); }).join();
          a.mm(a);
        }) == 2 * 2 * 4 * 4 * 4);
}
