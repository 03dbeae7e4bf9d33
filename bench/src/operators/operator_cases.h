#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::bench {

/// An operator on small tensors, of which a call costs little but the call.
struct OperatorCase {
  std::string name;
  /// `a`, `b`: [16, 16], on one device.
  at::Tensor (*call)(at::Tensor& a, const at::Tensor& b);
};

/// Typical ones: out of place and in place, element by element, reduced,
/// multiplied, copied, joined, and a view.
std::vector<OperatorCase> operator_cases();

} // namespace tandem::bench
