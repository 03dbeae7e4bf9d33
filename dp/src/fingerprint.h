#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::detail {

/// 64 bits that differ, but for a chance of about 2^-64, if any byte of the
/// tensors does, or the order of values; the same bits for the same bytes. NaN
/// payloads and the sign of zero count. See Note [Fingerprint] in the .cpp.
/// `tensors`: of one device, each without gaps or overlap in memory; those that
/// follow each other should be of one dtype.
class Fingerprint {
 public:
  /// Starts to compute on the tensors' device.
  void add(const std::vector<at::Tensor>& tensors);
  /// The bits of all that was added. Waits for the device, once.
  int64_t finish();

 private:
  /// One 0-dim tensor per call of `add`.
  std::vector<at::Tensor> parts_;
};

/// What devices without host memory compute; public for its test. Returns a
/// 0-dim int64 tensor there.
at::Tensor fingerprint_by_operators(at::TensorList tensors);

} // namespace tandem::detail
