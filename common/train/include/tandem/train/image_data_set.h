#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>
#include <torch/data/datasets/base.h>

#include <tandem/train/batch_source.h>

namespace tandem::train {

/// Images of bytes are fed as (value / 255 - mean) / stddev.
struct Normalization {
  double mean = 0;
  double stddev = 1;
};

/// Labelled images in memory, kept as bytes and made float batch by batch; one
/// of LibTorch's data sets. Copies share the memory.
class ImageDataSet
    : public torch::data::datasets::BatchDataset<ImageDataSet, Batch> {
 public:
  /// `images`: uint8 [N, C, H, W]; `labels`: int64 [N].
  /// **Throws** `ShapeError` otherwise.
  ImageDataSet(
      at::Tensor images,
      at::Tensor labels,
      Normalization normalization = {});

  /// `data`: float32 [rows, C, H, W]; `target`: int64 [rows].
  /// **Throws** `ShapeError` naming a row that the set does not have.
  Batch get_batch(c10::ArrayRef<size_t> rows) override;
  std::optional<size_t> size() const override;

  const at::Tensor& images() const {
    return images_;
  }
  const at::Tensor& labels() const {
    return labels_;
  }

 private:
  at::Tensor images_;
  at::Tensor labels_;
  Normalization normalization_;
};

} // namespace tandem::train
