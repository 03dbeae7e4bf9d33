#include <tandem/train/image_data_set.h>

#include <utility>
#include <vector>

#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tandem/core/errors.h>

namespace tandem::train {

namespace {

void check_byte_images(const at::Tensor& images, const at::Tensor& labels) {
  if (images.scalar_type() != at::kByte || images.dim() != 4) {
    throw ShapeError(fmt::format(
        "ImageDataSet: images: expected uint8 [N, C, H, W], got {} [{}]",
        c10::toString(images.scalar_type()),
        fmt::join(images.sizes(), ", ")));
  }
  if (labels.scalar_type() != at::kLong || labels.dim() != 1 ||
      labels.size(0) != images.size(0)) {
    throw ShapeError(fmt::format(
        "ImageDataSet: labels: expected int64 [{}], one for each image, got "
        "{} [{}]",
        images.size(0),
        c10::toString(labels.scalar_type()),
        fmt::join(labels.sizes(), ", ")));
  }
}

at::Tensor as_index(c10::ArrayRef<size_t> rows, int64_t num_rows) {
  std::vector<int64_t> index;
  index.reserve(rows.size());
  for (const size_t row : rows) {
    if (std::cmp_greater_equal(row, num_rows)) {
      throw ShapeError(fmt::format(
          "ImageDataSet: row: expected below {}, got {}",
          num_rows,
          row));
    }
    index.push_back(static_cast<int64_t>(row));
  }
  return at::tensor(index, at::kLong);
}

} // namespace

ImageDataSet::ImageDataSet(
    at::Tensor images,
    at::Tensor labels,
    Normalization normalization)
    : images_(std::move(images)),
      labels_(std::move(labels)),
      normalization_(normalization) {
  check_byte_images(images_, labels_);
}

Batch ImageDataSet::get_batch(c10::ArrayRef<size_t> rows) {
  const auto index = as_index(rows, images_.size(0));
  auto data = images_.index_select(0, index).to(at::kFloat); // [rows, C, H, W]
  data.div_(255).sub_(normalization_.mean).div_(normalization_.stddev);
  return {std::move(data), labels_.index_select(0, index)};
}

std::optional<size_t> ImageDataSet::size() const {
  return static_cast<size_t>(images_.size(0));
}

} // namespace tandem::train
