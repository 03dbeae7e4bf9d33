#include <tandem/train/prefetched_batches.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/train/shuffled_order.h>

#include "tandem_catch.h"

namespace {

using tandem::ConfigError;
using tandem::train::Batch;
using tandem::train::PrefetchedBatches;
using tandem::train::PrefetchOptions;
using tandem::train::ShardedSampler;
using tandem::train::ShardedSamplerOptions;
using tandem::train::shuffled_order;

constexpr size_t kNumSamples = 50;

ShardedSampler whole() {
  return {kNumSamples, ShardedSamplerOptions(0, 1).seed(5)};
}

Batch indices_as_batch(c10::ArrayRef<size_t> rows) {
  const std::vector<int64_t> values(rows.begin(), rows.end());
  return {torch::tensor(values), torch::tensor(values)};
}

std::vector<size_t> read_epoch(PrefetchedBatches& batches, uint64_t epoch) {
  std::vector<size_t> rows;
  batches.start_epoch(epoch);
  while (const auto batch = batches.next()) {
    const auto* data = batch->data.data_ptr<int64_t>();
    rows.insert(rows.end(), data, data + batch->data.numel());
  }
  return rows;
}

} // namespace

TEST_CASE(
    "batches made ahead come in the sampler's order, epoch by epoch",
    "[train]") {
  for (const size_t ahead : {0, 1, 4, 100}) {
    PrefetchedBatches batches(
        indices_as_batch,
        whole(),
        PrefetchOptions(8).ahead(ahead));
    CHECK(batches.batches_per_epoch() == 7);
    for (const uint64_t epoch : {0, 1, 0}) {
      CHECK(read_epoch(batches, epoch) == shuffled_order(50, 5, epoch));
      CHECK_FALSE(batches.next().has_value());
    }
  }
}

TEST_CASE("an epoch that is left early does not disturb the next", "[train]") {
  PrefetchedBatches batches(indices_as_batch, whole(), PrefetchOptions(8));
  batches.start_epoch(3);
  CHECK(batches.next().has_value());
  CHECK(read_epoch(batches, 1) == shuffled_order(50, 5, 1));
}

TEST_CASE("batches are made before they are asked for", "[train]") {
  std::atomic<int> made = 0;
  PrefetchedBatches batches(
      [&made](c10::ArrayRef<size_t> rows) {
        ++made;
        made.notify_all();
        return indices_as_batch(rows);
      },
      whole(),
      PrefetchOptions(8).ahead(3));
  batches.start_epoch(0);
  CHECK(made == 0);
  CHECK(batches.next().has_value());
  for (int seen = made; seen < 4; seen = made) {
    made.wait(seen); // one was taken, three are ahead: comes without a call
  }
  CHECK(made == 4);
}

TEST_CASE(
    "what a data set throws comes out of next, with its type",
    "[train]") {
  for (const size_t ahead : {0, 2}) {
    PrefetchedBatches batches(
        [](c10::ArrayRef<size_t> rows) -> Batch {
          if (rows.front() == shuffled_order(50, 5, 0)[16]) {
            throw std::out_of_range("wonderful");
          }
          return indices_as_batch(rows);
        },
        whole(),
        PrefetchOptions(8).ahead(ahead));
    batches.start_epoch(0);
    CHECK(batches.next().has_value());
    CHECK(batches.next().has_value());
    CHECK_THROWS_AS(batches.next(), std::out_of_range);
  }
}

TEST_CASE("a source that is dropped early leaves nothing behind", "[train]") {
  const auto held = std::make_shared<int>(0);
  {
    PrefetchedBatches batches(
        [held](c10::ArrayRef<size_t> rows) { return indices_as_batch(rows); },
        whole(),
        PrefetchOptions(8));
    batches.start_epoch(0);
    CHECK(batches.next().has_value());
    CHECK(held.use_count() > 1);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("batches without rows are refused", "[train]") {
  CHECK_THROWS_AS(
      PrefetchedBatches(indices_as_batch, whole(), PrefetchOptions(0)),
      ConfigError);
}
