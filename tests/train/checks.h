// What the tests of this part say often.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <tandem/testing/error_text.h>

namespace tandem::train::test {

/// The text of what `function` throws; empty if it throws nothing.
template <typename Exception, typename Function>
std::string error_of(Function&& function) {
  return testing::thrown_text<Exception>(function).value_or("");
}

/// Equal but for the rounding of a few operations in double precision.
inline bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

} // namespace tandem::train::test
