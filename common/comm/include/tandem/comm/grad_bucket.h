#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <tandem/core/named_tensors.h>

namespace tandem::comm {

/// Gradients that are reduced together: what a communication hook works on.
///
/// **Owns** references to buffer and parameters. A hook may keep a reference to
/// the bucket until its result was collected.
class GradBucket {
 public:
  /// `index` counts the buckets of one reduction, in the order in which they
  /// are launched on every rank; `is_last` is true for the last one. `buffer`
  /// holds the gradients of `parameters` one after the other without padding,
  /// each in the order of its parameter's memory; for a parameter with sparse
  /// gradients, alone in its bucket, the sparse gradient itself.
  GradBucket(
      size_t index,
      bool is_last,
      at::Tensor buffer,
      std::vector<NamedTensor> parameters);

  size_t index() const {
    return index_;
  }
  bool is_last() const {
    return is_last_;
  }
  bool is_sparse() const {
    return buffer_.layout() != at::kStrided;
  }
  /// This rank's gradients, not divided by anything; a hook may work in place.
  const at::Tensor& buffer() const { // [elements]
    return buffer_;
  }
  /// The dtype that it had at construction.
  at::ScalarType dtype() const {
    return dtype_;
  }
  /// **Throws** `ShapeError` unless it has the size and device of the buffer it
  /// replaces; its dtype may be another.
  void set_buffer(at::Tensor buffer);

  /// Views into `buffer()`, shaped and strided as the parameters.
  std::vector<at::Tensor> gradients() const;
  const std::vector<NamedTensor>& parameters() const {
    return parameters_;
  }

 private:
  size_t index_;
  bool is_last_;
  at::Tensor buffer_;
  at::ScalarType dtype_;
  std::vector<NamedTensor> parameters_;
};

} // namespace tandem::comm
