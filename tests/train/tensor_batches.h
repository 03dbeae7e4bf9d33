// Batches cut from tensors in order, for tests of what consumes them.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include <tandem/train/batch_source.h>

namespace tandem::train::test {

/// Rows [0, batch_rows), [batch_rows, 2 batch_rows), … of the tensors in every
/// epoch.
class TensorBatches final : public BatchSource {
 public:
  TensorBatches(at::Tensor data, at::Tensor target, int64_t batch_rows)
      : data_(std::move(data)),
        target_(std::move(target)),
        batch_rows_(batch_rows) {}

  void start_epoch(uint64_t epoch) override {
    epochs.push_back(epoch);
    at_ = 0;
  }

  std::optional<Batch> next() override {
    if (at_ >= data_.size(0)) {
      return std::nullopt;
    }
    const int64_t end = std::min(at_ + batch_rows_, data_.size(0));
    const int64_t begin = std::exchange(at_, end);
    return Batch{data_.slice(0, begin, end), target_.slice(0, begin, end)};
  }

  int64_t batches_per_epoch() const override {
    return (data_.size(0) + batch_rows_ - 1) / batch_rows_;
  }

  /// Epochs that were started, in order.
  std::vector<uint64_t> epochs;

 private:
  at::Tensor data_;
  at::Tensor target_;
  int64_t batch_rows_;
  int64_t at_ = 0;
};

} // namespace tandem::train::test
