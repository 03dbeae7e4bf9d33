#include <tandem/train/prefetched_batches.h>

#include <exception>

#include <torch/data/dataloader.h>

#include <tandem/core/errors.h>

namespace tandem::train {

namespace detail {

/// A `PrefetchedBatches::Load` as the data set of a LibTorch loader.
struct LoadedDataSet
    : torch::data::datasets::BatchDataset<LoadedDataSet, Batch> {
  explicit LoadedDataSet(PrefetchedBatches::Load function)
      : load(std::move(function)) {}

  Batch get_batch(c10::ArrayRef<size_t> rows) override {
    return load(rows);
  }
  std::optional<size_t> size() const override {
    return std::nullopt;
  }

  PrefetchedBatches::Load load;
};

} // namespace detail

namespace {

torch::data::DataLoaderOptions loader_options(const PrefetchOptions& options) {
  return torch::data::DataLoaderOptions(options.batch_rows())
      .workers(options.ahead() > 0 ? 1 : 0)
      .max_jobs(options.ahead());
}

} // namespace

struct PrefetchedBatches::Loader final
    : torch::data::StatelessDataLoader<detail::LoadedDataSet, ShardedSampler> {
  using StatelessDataLoader::next;
  using StatelessDataLoader::StatelessDataLoader;
};

PrefetchedBatches::PrefetchedBatches(
    Load load,
    ShardedSampler sampler,
    const PrefetchOptions& options)
    : load_(std::move(load)), sampler_(std::move(sampler)), options_(options) {
  if (options.batch_rows() == 0) {
    throw ConfigError(
        "PrefetchedBatches: batch_rows: expected at least 1, got 0");
  }
}

PrefetchedBatches::~PrefetchedBatches() = default;

void PrefetchedBatches::start_epoch(uint64_t epoch) {
  sampler_.set_epoch(epoch);
  loader_.reset(); // joins its thread before another one starts
}

std::optional<Batch> PrefetchedBatches::next() {
  if (!loader_) {
    loader_ = std::make_unique<Loader>(
        detail::LoadedDataSet(load_),
        sampler_,
        loader_options(options_));
    loader_->begin();
  }
  try {
    return loader_->next();
  } catch (const torch::data::WorkerException& error) {
    std::rethrow_exception(error.original_exception);
  }
}

int64_t PrefetchedBatches::batches_per_epoch() const {
  const size_t rows = options_.batch_rows();
  return static_cast<int64_t>((sampler_.size() + rows - 1) / rows);
}

} // namespace tandem::train
