#pragma once

#include <cstdint>
#include <optional>

#include <torch/data/example.h>

namespace tandem::train {

/// One process's rows of a step: `data` and `target`, both with the rows first.
using Batch = torch::data::Example<>;

/// Where a trainer gets its batches from.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// Begins an epoch; what is left of the one before is dropped.
  virtual void start_epoch(uint64_t epoch) = 0;
  /// The next batch, or nothing at the end of the epoch.
  virtual std::optional<Batch> next() = 0;
  /// Batches of a whole epoch in this process.
  virtual int64_t batches_per_epoch() const = 0;
};

} // namespace tandem::train
