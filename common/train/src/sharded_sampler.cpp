#include <tandem/train/sharded_sampler.h>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include <tandem/core/errors.h>
#include <tandem/train/shuffled_order.h>

namespace tandem::train {

namespace {

const ShardedSamplerOptions& checked(const ShardedSamplerOptions& options) {
  if (options.world_size() < 1) {
    throw ConfigError(fmt::format(
        "ShardedSampler: world_size: expected at least 1, got {}",
        options.world_size()));
  }
  if (options.rank() < 0 || options.rank() >= options.world_size()) {
    throw ConfigError(fmt::format(
        "ShardedSampler: rank: expected 0 to {} in a world of {}, got {}",
        options.world_size() - 1,
        options.world_size(),
        options.rank()));
  }
  return options;
}

// How many of `count` samples are shared out among `world_size` ranks.
size_t shared_count(size_t count, size_t world_size, Remainder remainder) {
  switch (remainder) {
    case Remainder::kPad:
      return (count + world_size - 1) / world_size * world_size;
    case Remainder::kDrop:
      return count / world_size * world_size;
    case Remainder::kUneven:
      return count;
  }
  return count;
}

void write_number(
    torch::serialize::OutputArchive& archive,
    const std::string& key,
    uint64_t value) {
  archive.write(key, c10::IValue(static_cast<int64_t>(value)));
}

uint64_t read_number(
    torch::serialize::InputArchive& archive,
    const std::string& key) {
  c10::IValue value;
  archive.read(key, value);
  return static_cast<uint64_t>(value.toInt());
}

} // namespace

ShardedSampler::ShardedSampler(
    size_t num_samples,
    const ShardedSamplerOptions& options)
    : options_(checked(options)),
      num_samples_(num_samples),
      epoch_(std::make_shared<std::atomic<uint64_t>>(0)) {
  begin(0);
}

void ShardedSampler::set_epoch(uint64_t epoch) {
  epoch_->store(epoch);
}

uint64_t ShardedSampler::epoch() const {
  return epoch_->load();
}

size_t ShardedSampler::size() const {
  const auto world_size = static_cast<size_t>(options_.world_size());
  const auto rank = static_cast<size_t>(options_.rank());
  const size_t shared =
      shared_count(num_samples_, world_size, options_.remainder());
  return (shared + world_size - 1 - rank) / world_size;
}

void ShardedSampler::reset(std::optional<size_t> new_size) {
  num_samples_ = new_size.value_or(num_samples_);
  begin(0);
}

void ShardedSampler::begin(size_t position) {
  current_epoch_ = epoch();
  if (options_.shuffle()) {
    order_ = shuffled_order(num_samples_, options_.seed(), current_epoch_);
  } else {
    order_.resize(num_samples_);
    std::iota(order_.begin(), order_.end(), size_t{0});
  }
  position_ = position;
  end_ = position +
      shared_count(
             num_samples_ - std::min(position, num_samples_),
             static_cast<size_t>(options_.world_size()),
             options_.remainder());
}

std::optional<std::vector<size_t>> ShardedSampler::next(size_t batch_size) {
  if (batch_size == 0) {
    throw ConfigError("ShardedSampler: batch_size: expected at least 1, got 0");
  }
  const auto world_size = static_cast<size_t>(options_.world_size());
  std::vector<size_t> rows;
  size_t at = position_ + static_cast<size_t>(options_.rank());
  for (; at < end_ && rows.size() < batch_size; at += world_size) {
    rows.push_back(order_[at % num_samples_]);
  }
  position_ = std::min(end_, position_ + batch_size * world_size);
  if (rows.empty()) {
    return std::nullopt;
  }
  return rows;
}

void ShardedSampler::save(torch::serialize::OutputArchive& archive) const {
  write_number(archive, "epoch", current_epoch_);
  write_number(archive, "position", position_);
}

void ShardedSampler::load(torch::serialize::InputArchive& archive) {
  set_epoch(read_number(archive, "epoch"));
  begin(read_number(archive, "position"));
}

} // namespace tandem::train
