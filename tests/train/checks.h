// What the tests of this part say often.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

namespace tandem::train::test {

/// What `function` throws, as text; empty if nothing.
template <typename Exception, typename Function>
std::string error_of(const Function& function) {
  try {
    function();
  } catch (const Exception& error) {
    return error.what_without_backtrace();
  }
  return {};
}

/// Equal but for the rounding of a few operations in double precision.
inline bool nearly_equal(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

} // namespace tandem::train::test
