#include <tandem/core/tensor_difference.h>

#include <cmath>
#include <limits>

namespace tandem {

namespace {

// A number, so that it survives in files.
constexpr double kIncomparable = std::numeric_limits<double>::max();

} // namespace

double max_abs_difference(
    const at::Tensor& expected,
    const at::Tensor& actual) {
  if (!expected.defined() && !actual.defined()) {
    return 0;
  }
  if (!expected.defined() || !actual.defined() ||
      expected.sizes() != actual.sizes()) {
    return kIncomparable;
  }
  if (expected.numel() == 0) {
    return 0;
  }
  const auto difference = (expected.detach().to(at::kCPU, at::kDouble) -
                           actual.detach().to(at::kCPU, at::kDouble))
                              .abs()
                              .max()
                              .item<double>();
  return std::isfinite(difference) ? difference : kIncomparable;
}

} // namespace tandem
