#include <tandem/comm/grad_bucket.h>

#include <utility>

#include <fmt/format.h>

#include <tandem/core/errors.h>
#include <tandem/core/flat_buffer.h>

namespace tandem::comm {

GradBucket::GradBucket(
    size_t index,
    bool is_last,
    at::Tensor buffer,
    std::vector<NamedTensor> parameters)
    : index_(index),
      is_last_(is_last),
      buffer_(std::move(buffer)),
      dtype_(buffer_.scalar_type()),
      parameters_(std::move(parameters)) {}

void GradBucket::set_buffer(at::Tensor buffer) {
  if (buffer.sizes() != buffer_.sizes() ||
      buffer.device() != buffer_.device()) {
    throw ShapeError(fmt::format(
        "[comm] buffer of gradient bucket {}: expected shape {} on {}, got {} "
        "on {}",
        index_,
        c10::str(buffer_.sizes()),
        buffer_.device().str(),
        c10::str(buffer.sizes()),
        buffer.device().str()));
  }
  buffer_ = std::move(buffer);
}

std::vector<at::Tensor> GradBucket::gradients() const {
  if (is_sparse()) {
    return {buffer_};
  }
  std::vector<at::Tensor> views;
  views.reserve(parameters_.size());
  int64_t offset_elems = 0;
  for (const auto& parameter : parameters_) {
    views.push_back(view_into_flat(buffer_, offset_elems, parameter.tensor));
    offset_elems += parameter.tensor.numel();
  }
  return views;
}

} // namespace tandem::comm
