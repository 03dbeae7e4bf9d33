#include <tandem/train/sharded_sampler.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include <torch/torch.h>

#include <tandem/core/errors.h>
#include <tandem/train/batch_source.h>
#include <tandem/train/shuffled_order.h>

#include "checks.h"
#include "tandem_catch.h"

using tandem::ConfigError;
using tandem::train::Batch;
using tandem::train::Remainder;
using tandem::train::ShardedSampler;
using tandem::train::ShardedSamplerOptions;
using tandem::train::shuffled_order;
using tandem::train::test::error_of;

namespace {

using Rows = std::vector<size_t>;

Rows drain(ShardedSampler& sampler, size_t batch_size = 7) {
  Rows rows;
  while (const auto batch = sampler.next(batch_size)) {
    CHECK(!batch->empty());
    rows.insert(rows.end(), batch->begin(), batch->end());
  }
  return rows;
}

std::vector<ShardedSampler> samplers(
    size_t num_samples,
    int64_t world_size,
    Remainder remainder) {
  std::vector<ShardedSampler> all;
  for (int64_t rank = 0; rank < world_size; ++rank) {
    all.emplace_back(
        num_samples,
        ShardedSamplerOptions(rank, world_size).seed(5).remainder(remainder));
  }
  return all;
}

Rows sorted(Rows rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

// A data set whose samples are their own indices.
struct Indices : torch::data::datasets::BatchDataset<Indices, Batch> {
  Batch get_batch(c10::ArrayRef<size_t> rows) override {
    const std::vector<int64_t> values(rows.begin(), rows.end());
    return {torch::tensor(values), torch::tensor(values)};
  }
  std::optional<size_t> size() const override {
    return 10;
  }
};

Rows values_of(const Batch& batch) {
  const auto* data = batch.data.data_ptr<int64_t>();
  return {data, data + batch.data.numel()};
}

} // namespace

TEST_CASE(
    "ranks share an epoch in equal counts that cover it, padded or not",
    "[train][SMP-01]") {
  for (const int64_t world_size : {1, 2, 3, 7}) {
    const auto num_samples = static_cast<size_t>(100 + world_size + 1);
    const auto world = static_cast<size_t>(world_size);
    std::multiset<size_t> padded;
    for (auto& sampler : samplers(num_samples, world_size, Remainder::kPad)) {
      const auto rows = drain(sampler);
      CHECK(rows.size() == (num_samples + world - 1) / world);
      CHECK(rows.size() == sampler.size());
      padded.insert(rows.begin(), rows.end());
    }
    for (size_t row = 0; row < num_samples; ++row) {
      CHECK(padded.count(row) >= 1);
    }
    for (auto& sampler : samplers(num_samples, world_size, Remainder::kDrop)) {
      CHECK(drain(sampler).size() == num_samples / world);
      CHECK(sampler.size() == num_samples / world);
    }
  }
}

TEST_CASE(
    "padding continues the order from its beginning, as often as needed",
    "[train][SMP-01]") {
  const auto order = shuffled_order(2, 5, 0);
  Rows all;
  for (auto& sampler : samplers(2, 5, Remainder::kPad)) {
    all.push_back(drain(sampler).at(0));
  }
  CHECK(all == Rows{order[0], order[1], order[0], order[1], order[0]});
}

TEST_CASE(
    "uneven shares hold every sample once and differ by one at most",
    "[train][SMP-01]") {
  for (const size_t num_samples : {0, 1, 7, 100}) {
    Rows all;
    for (auto& sampler : samplers(num_samples, 3, Remainder::kUneven)) {
      const auto rows = drain(sampler);
      CHECK(rows.size() == sampler.size());
      CHECK(rows.size() - num_samples / 3 <= 1);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    CHECK(sorted(all) == sorted(shuffled_order(num_samples, 0, 0)));
  }
}

TEST_CASE(
    "the ranks' batches together are the batch of a single process",
    "[train][SMP-01]") {
  constexpr size_t global_batch = 12;
  const auto order = shuffled_order(40, 5, 0);
  for (const int64_t world_size : {1, 2, 3, 4}) {
    auto ranks = samplers(40, world_size, Remainder::kDrop);
    for (size_t begin = 0; begin + global_batch <= 40; begin += global_batch) {
      Rows together;
      for (auto& sampler : ranks) {
        const auto rows =
            *sampler.next(global_batch / static_cast<size_t>(world_size));
        together.insert(together.end(), rows.begin(), rows.end());
      }
      const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
      CHECK(sorted(together) == sorted(Rows(first, first + global_batch)));
    }
  }
}

TEST_CASE(
    "an epoch's order comes back with the epoch and differs from another's",
    "[train][SMP-03]") {
  std::vector<std::vector<Rows>> orders; // [rank][visit]
  for (auto& sampler : samplers(50, 2, Remainder::kPad)) {
    std::vector<Rows> visits;
    for (const uint64_t epoch : {0, 1, 0}) {
      sampler.set_epoch(epoch);
      sampler.reset();
      visits.push_back(drain(sampler));
    }
    CHECK(visits[0] == visits[2]);
    CHECK(visits[0] != visits[1]);
    orders.push_back(visits);
  }
  // Before slicing the ranks have one order: it can be put together again.
  for (const uint64_t epoch : {0, 1}) {
    Rows together;
    for (size_t i = 0; i < 25; ++i) {
      together.push_back(orders[0][epoch][i]);
      together.push_back(orders[1][epoch][i]);
    }
    CHECK(together == shuffled_order(50, 5, epoch));
  }
}

TEST_CASE("another seed gives another order", "[train][SMP-04]") {
  const ShardedSamplerOptions whole(0, 1);
  ShardedSampler one(50, ShardedSamplerOptions(whole).seed(1));
  ShardedSampler two(50, ShardedSamplerOptions(whole).seed(2));
  CHECK(drain(one) != drain(two));
}

TEST_CASE(
    "without padding no sample comes twice in an epoch",
    "[train][SMP-05]") {
  std::set<size_t> seen;
  size_t count = 0;
  for (auto& sampler : samplers(101, 3, Remainder::kDrop)) {
    for (const size_t row : drain(sampler)) {
      seen.insert(row);
      ++count;
    }
  }
  CHECK(count == 99);
  CHECK(seen.size() == 99);
}

TEST_CASE("a sampler refuses what names no rank", "[train][SMP-06]") {
  const auto make = [](int64_t rank, int64_t world_size) {
    return error_of<ConfigError>([&] {
      ShardedSampler(10, {rank, world_size});
    });
  };
  CHECK(make(2, 2).find("rank: expected 0 to 1") != std::string::npos);
  CHECK(make(2, 2).find("got 2") != std::string::npos);
  CHECK(make(-1, 2).find("got -1") != std::string::npos);
  CHECK(make(0, 0).find("world_size") != std::string::npos);
  CHECK(make(0, -3).find("got -3") != std::string::npos);
  ShardedSampler sampler(10, {0, 1});
  CHECK_THROWS_AS(sampler.next(0), ConfigError);
}

TEST_CASE("a sampler over no samples yields nothing", "[train][SMP-06]") {
  for (const auto remainder :
       {Remainder::kPad, Remainder::kDrop, Remainder::kUneven}) {
    ShardedSampler sampler(0, ShardedSamplerOptions(1, 2).remainder(remainder));
    CHECK(sampler.size() == 0);
    CHECK_FALSE(sampler.next(4).has_value());
  }
}

TEST_CASE("without shuffling the order is the data set's", "[train]") {
  ShardedSampler sampler(6, ShardedSamplerOptions(1, 2).shuffle(false));
  sampler.set_epoch(3);
  sampler.reset();
  CHECK(drain(sampler) == Rows{1, 3, 5});
  sampler.reset(4);
  CHECK(drain(sampler) == Rows{1, 3});
}

TEST_CASE(
    "a sampler that was kept sets the epoch of the one in a data loader",
    "[train][SMP-03]") {
  ShardedSampler sampler(10, ShardedSamplerOptions(0, 1).seed(5));
  const auto loader = torch::data::make_data_loader(Indices(), sampler, 4);
  for (const uint64_t epoch : {0, 1, 0}) {
    sampler.set_epoch(epoch);
    Rows rows;
    for (const auto& batch : *loader) {
      const auto values = values_of(batch);
      rows.insert(rows.end(), values.begin(), values.end());
    }
    CHECK(rows == shuffled_order(10, 5, epoch));
  }
}

TEST_CASE(
    "a loaded sampler continues where the saved one was, on another world size "
    "too",
    "[train]") {
  auto before = samplers(24, 2, Remainder::kDrop);
  std::vector<std::string> saved;
  Rows seen;
  for (auto& sampler : before) {
    sampler.set_epoch(2);
    sampler.reset();
    const auto rows = *sampler.next(3);
    seen.insert(seen.end(), rows.begin(), rows.end());
    torch::serialize::OutputArchive archive;
    sampler.save(archive);
    std::ostringstream stream;
    archive.save_to(stream);
    saved.push_back(stream.str());
  }
  for (auto& sampler : samplers(24, 3, Remainder::kDrop)) {
    std::istringstream stream(saved[0]);
    torch::serialize::InputArchive archive;
    archive.load_from(stream);
    sampler.load(archive);
    CHECK(sampler.epoch() == 2);
    const auto rows = drain(sampler);
    seen.insert(seen.end(), rows.begin(), rows.end());
  }
  CHECK(sorted(seen) == sorted(shuffled_order(24, 0, 0)));
}
