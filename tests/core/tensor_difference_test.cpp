#include <tandem/core/tensor_difference.h>

#include <limits>

#include <torch/types.h>

#include "tandem_catch.h"

using tandem::max_abs_difference;

TEST_CASE("the largest difference of two tensors is found", "[core]") {
  const auto a = torch::tensor({1.0, -2.0, 3.0});
  CHECK(max_abs_difference(a, a.clone()) == 0);
  CHECK(max_abs_difference(a, torch::tensor({1.5, 2.0, 3.0})) == 4);
  CHECK(max_abs_difference(a, a.to(torch::kFloat) + 0.25) == 0.25);
  CHECK(max_abs_difference({}, {}) == 0);
  CHECK(max_abs_difference(torch::empty({0}), torch::empty({0})) == 0);
}

TEST_CASE("what cannot be compared differs as much as can be", "[core]") {
  const auto a = torch::ones({2});
  const double most = std::numeric_limits<double>::max();
  CHECK(max_abs_difference(a, {}) == most);
  CHECK(max_abs_difference({}, a) == most);
  CHECK(max_abs_difference(a, torch::ones({1, 2})) == most);
  CHECK(max_abs_difference(a, a / 0) == most);
  CHECK(max_abs_difference(a, torch::full({2}, std::nan(""))) == most);
}
