#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/arg.h>
#include <torch/data/samplers/base.h>

namespace tandem::train {

/// What becomes of the samples that the ranks cannot share evenly.
enum class Remainder {
  /// The order is continued from its beginning until every rank has
  /// ceil(n / W) samples; up to W - 1 samples come twice.
  kPad,
  /// Every rank has floor(n / W) samples; the last of the epoch's order are
  /// left out, other ones in each epoch.
  kDrop,
  /// Every sample comes once; ranks may differ by one. For evaluation: a
  /// training loop needs the same number of batches on every rank.
  kUneven,
};

struct ShardedSamplerOptions {
  ShardedSamplerOptions(int64_t rank, int64_t world_size)
      : rank_(rank), world_size_(world_size) {}

  TORCH_ARG(int64_t, rank);
  TORCH_ARG(int64_t, world_size);
  /// Another seed, another order; the same on every rank.
  TORCH_ARG(uint64_t, seed) = 0;
  /// Off: the order of the data set, in every epoch.
  TORCH_ARG(bool, shuffle) = true;
  TORCH_ARG(Remainder, remainder) = Remainder::kPad;
};

/// One rank's share of a data set, as indices. The order of the whole data set
/// is `shuffled_order(n, seed, epoch)`, equal for every world size; rank r of W
/// takes positions r, r + W, r + 2W, … of it. So if every rank draws B / W at a
/// time, the ranks' k-th batches together are positions [kB, (k + 1)B), the
/// k-th batch of a single process that draws B.
///
/// Copies share the epoch and nothing else: `set_epoch` on the sampler that you
/// kept reaches the copy that a data loader owns.
///
/// **Threads**: a sampler belongs to one thread, `set_epoch` may come from any.
///
/// Example:
/// ```cpp
/// tandem::train::ShardedSampler sampler(
///     data_set.size().value(), {model->rank(), model->world_size()});
/// auto loader = torch::data::make_data_loader(data_set, sampler, 64);
/// for (int epoch = 0; epoch < 10; ++epoch) {
///   sampler.set_epoch(epoch);
///   for (const auto& batch : *loader) { … }
/// }
/// ```
class ShardedSampler : public torch::data::samplers::Sampler<> {
 public:
  /// **Throws** `ConfigError` if the world is smaller than 1 or does not have
  /// the rank.
  ShardedSampler(size_t num_samples, const ShardedSamplerOptions& options);

  /// The epoch whose order the next `reset` begins.
  void set_epoch(uint64_t epoch);
  uint64_t epoch() const;

  /// Samples of this rank in a whole epoch.
  size_t size() const;

  /// Begins the epoch set last, over `new_size` samples if given.
  void reset(std::optional<size_t> new_size = std::nullopt) override;
  /// The next up to `batch_size` indices, or nothing at the end of the epoch.
  /// **Throws** `ConfigError` if `batch_size` is 0.
  std::optional<std::vector<size_t>> next(size_t batch_size) override;

  /// Keeps epoch and progress, counted over all ranks, so that a world of
  /// another size can continue the epoch; seed and sizes are the constructor's.
  void save(torch::serialize::OutputArchive& archive) const override;
  /// Continues where `save` was called.
  void load(torch::serialize::InputArchive& archive) override;

 private:
  /// Begins the epoch at a position of its order.
  void begin(size_t position);

  ShardedSamplerOptions options_;
  size_t num_samples_;
  std::shared_ptr<std::atomic<uint64_t>> epoch_;
  std::vector<size_t> order_;
  /// Epoch of `order_`.
  uint64_t current_epoch_ = 0;
  /// Positions [position_, end_) are still to be shared out.
  size_t position_ = 0;
  size_t end_ = 0;
};

} // namespace tandem::train
