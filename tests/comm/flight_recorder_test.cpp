#include "comm/src/flight_recorder.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <torch/torch.h>

#include <tandem/comm/flight_record.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>

#include "comm/src/collective.h"
#include "tandem_catch.h"

namespace comm = tandem::comm;
using comm::Collective;
using comm::FlightRecorder;
using comm::FlightState;
using comm::ReduceOp;
using tandem::testing::missing_parts;
using tandem::testing::thrown_text;

namespace {

constexpr auto kCapacity = static_cast<int64_t>(FlightRecorder::kCapacity);

Collective sum_of(int64_t size) {
  return Collective::all_reduce(torch::empty({size}), ReduceOp::kSum);
}

} // namespace

TEST_CASE("a flight recorder keeps the last collectives", "[comm][FT-11]") {
  FlightRecorder recorder;
  for (int64_t size = 1; size <= kCapacity + 10; ++size) {
    CHECK(recorder.begin(sum_of(size)) == size);
  }
  const auto entries = recorder.entries();
  REQUIRE(entries.size() == FlightRecorder::kCapacity);
  CHECK(entries.front().sequence == 11);
  CHECK(entries.front().call == "all-reduce (sum) of Float [11]");
  CHECK(entries.back().sequence == kCapacity + 10);
  CHECK(entries.back().started_us >= entries.front().started_us);
}

TEST_CASE("a flight recorder knows how each collective stands", "[comm]") {
  FlightRecorder recorder;
  const auto done = c10::make_intrusive<c10d::Work>();
  const auto waiting = c10::make_intrusive<c10d::Work>();
  recorder.launched(recorder.begin(sum_of(1)), done);
  recorder.launched(
      recorder.begin(Collective::broadcast(torch::empty({2, 3}), 1)),
      waiting);
  recorder.failed(recorder.begin(Collective::barrier()));
  CHECK(recorder.awaited(*waiting, "bucket 7") == 2);
  CHECK(recorder.any_in_flight());
  recorder.finished(1);
  CHECK(recorder.awaited(*done, "again") == 0);

  const auto entries = recorder.entries();
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].state == FlightState::kFinished);
  CHECK(entries[0].ended_us >= entries[0].started_us);
  CHECK(entries[1].state == FlightState::kStarted);
  CHECK(entries[1].call == "broadcast of Float [2, 3] from rank 1");
  CHECK(entries[1].what == "bucket 7");
  CHECK(entries[1].ended_us == 0);
  CHECK(entries[2].state == FlightState::kFailed);
  CHECK(
      recorder.position(2, "bucket 7") ==
      "bucket 7 (collective 2: broadcast of Float [2, 3] from rank 1)");
  CHECK(recorder.position(0, "a hook") == "a hook (after collective 3)");
}

TEST_CASE("a flight recorder's hash tells sequences apart", "[comm]") {
  const auto hash_of = [](const std::vector<Collective>& collectives) {
    FlightRecorder recorder;
    for (const auto& collective : collectives) {
      recorder.begin(collective);
    }
    return recorder.hash();
  };
  const auto tensor = torch::empty({4, 2});
  const auto sum = Collective::all_reduce(tensor, ReduceOp::kSum);
  const auto reference = hash_of({sum, Collective::barrier()});
  CHECK(reference == hash_of({sum, Collective::barrier()}));
  for (const auto& other : std::vector<std::vector<Collective>>{
           {sum},
           {Collective::barrier(), sum},
           {Collective::all_reduce(tensor, ReduceOp::kMean),
            Collective::barrier()},
           {Collective::all_reduce(tensor.t(), ReduceOp::kSum),
            Collective::barrier()},
           {Collective::all_reduce(tensor.to(at::kDouble), ReduceOp::kSum),
            Collective::barrier()},
           {Collective::broadcast(tensor, 0), Collective::barrier()}}) {
    CHECK(reference != hash_of(other));
  }
}

TEST_CASE("a flight record reads back as it was written", "[comm]") {
  comm::FlightRecord record;
  record.group = "0badcafe";
  record.rank = 1;
  record.size = 3;
  record.reason = "timeout";
  record.failure = "no answer from \"rank 2\"";
  record.missing = {2};
  record.entries = {
      {.sequence = 9,
       .operation = "barrier",
       .call = "barrier",
       .what = "the end",
       .state = FlightState::kFailed,
       .started_us = 5,
       .ended_us = 6}};
  const auto text = comm::format_flight_record(record);
  const auto read = comm::parse_flight_record(text, "a file");
  CHECK(comm::format_flight_record(read) == text);
  CHECK(read.missing == std::vector<int64_t>{2});
  CHECK(read.entries.at(0).state == FlightState::kFailed);
  for (const auto* wrong : {"", "{}", "[1]"}) {
    const auto error = thrown_text<tandem::ConfigError>(
        [&] { comm::parse_flight_record(wrong, "'x.json'"); });
    CHECK(missing_parts(
              error.value_or(""),
              {"'x.json'", "expected a flight record", "got"})
              .empty());
  }
}

// Shows what a collective pays: run it by its tag.
TEST_CASE("a flight recorder costs little", "[.measure]") {
  FlightRecorder recorder;
  const auto tensor = torch::empty({1000, 1000});
  constexpr int count = 100'000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) {
    const auto work = c10::make_intrusive<c10d::Work>();
    const auto sequence =
        recorder.begin(Collective::all_reduce(tensor, ReduceOp::kSum));
    recorder.launched(sequence, work);
    recorder.awaited(*work, "all-reduce of gradient bucket 1 of 2 ('weight')");
    recorder.finished(sequence);
  }
  const std::chrono::duration<double, std::nano> spent =
      std::chrono::steady_clock::now() - begin;
  WARN("ns per collective: " << spent.count() / count);
  CHECK(spent.count() / count < 10'000);
}
