#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <c10/util/ArrayRef.h>
#include <torch/arg.h>

#include <tandem/train/batch_source.h>
#include <tandem/train/sharded_sampler.h>

namespace tandem::train {

struct PrefetchOptions {
  explicit PrefetchOptions(size_t batch_rows) : batch_rows_(batch_rows) {}

  /// Rows of a batch in this process; the last of an epoch may have fewer.
  TORCH_ARG(size_t, batch_rows);
  /// Batches that one thread makes ahead. 0: none, each is made when asked for.
  TORCH_ARG(size_t, ahead) = 4;
};

/// The batches of a data set in a sampler's order, made ahead by one thread:
/// LibTorch's data loader behind the interface that a trainer drives.
///
/// What the data set throws while it makes a batch comes out of `next`.
/// **Threads**: the data set is used by the loader's thread alone.
class PrefetchedBatches final : public BatchSource {
 public:
  using Load = std::function<Batch(c10::ArrayRef<size_t>)>;

  /// **Throws** `ConfigError` if `batch_rows` is 0.
  PrefetchedBatches(
      Load load,
      ShardedSampler sampler,
      const PrefetchOptions& options);

  /// Any of LibTorch's data sets whose batches are `Batch`.
  template <typename DataSet>
  requires requires(DataSet& set, c10::ArrayRef<size_t> rows) {
    { set.get_batch(rows) } -> std::convertible_to<Batch>;
  }
  PrefetchedBatches(
      DataSet data_set,
      ShardedSampler sampler,
      const PrefetchOptions& options)
      : PrefetchedBatches(
            Load([data_set =
                      std::move(data_set)](c10::ArrayRef<size_t> rows) mutable {
              return data_set.get_batch(rows);
            }),
            std::move(sampler),
            options) {}

  ~PrefetchedBatches() override;

  void start_epoch(uint64_t epoch) override;
  std::optional<Batch> next() override;
  int64_t batches_per_epoch() const override;

 private:
  struct Loader;

  Load load_;
  ShardedSampler sampler_;
  PrefetchOptions options_;
  std::unique_ptr<Loader> loader_;
};

} // namespace tandem::train
