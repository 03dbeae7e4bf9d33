#include "doctor/flight_verdict.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <tandem/comm/flight_record.h>
#include <tandem/testing/temporary_directory.h>

#include "program.h"
#include "tandem_catch.h"

using Catch::Matchers::ContainsSubstring;
using tandem::bench::FlightVerdict;
using tandem::bench::judge_flight;
using tandem::bench::test::run_tandem;
using tandem::comm::FlightEntry;
using tandem::comm::FlightRecord;
using tandem::comm::FlightState;

namespace {

FlightEntry sum_entry(
    int64_t sequence,
    FlightState state,
    const std::string& size = "5") {
  return {
      .sequence = sequence,
      .operation = "all-reduce",
      .call = "all-reduce (sum) of Float [" + size + "]",
      .what = "bucket " + std::to_string(sequence),
      .state = state};
}

FlightRecord record_of(int64_t rank, std::vector<FlightEntry> entries) {
  FlightRecord record;
  record.group = "a";
  record.rank = rank;
  record.size = 3;
  record.reason = "signal";
  record.written_us = 10 + rank;
  record.entries = std::move(entries);
  return record;
}

FlightRecord failed_record(
    int64_t rank,
    std::vector<FlightEntry> entries,
    std::vector<int64_t> missing) {
  auto record = record_of(rank, std::move(entries));
  record.reason = "timeout";
  record.failure = "it failed";
  record.missing = std::move(missing);
  return record;
}

const auto kDone = FlightState::kFinished;
const auto kFailed = FlightState::kFailed;
const auto kStarted = FlightState::kStarted;

} // namespace

TEST_CASE("a flight's verdict names who is missing and where", "[bench]") {
  const auto verdict = judge_flight(
      {failed_record(0, {sum_entry(6, kDone), sum_entry(7, kFailed)}, {1}),
       failed_record(2, {sum_entry(6, kDone), sum_entry(7, kFailed)}, {1})});
  CHECK_FALSE(verdict.is_healthy);
  CHECK(
      verdict.finding ==
      "rank 1 is missing at collective 7, all-reduce (sum) of Float [5], for "
      "bucket 7");
  CHECK(
      verdict.context ==
      "ranks 0 and 2 waited there. Rank 1 left no record. See what rank 1 "
      "printed last");
}

TEST_CASE("a flight's verdict tells where a missing rank was", "[bench]") {
  const auto verdict = judge_flight(
      {failed_record(0, {sum_entry(6, kDone), sum_entry(7, kFailed)}, {1, 2}),
       record_of(1, {sum_entry(6, kDone)}),
       record_of(2, {sum_entry(6, kDone)})});
  CHECK_THAT(
      verdict.finding,
      ContainsSubstring("ranks 1 and 2 are missing at"));
  CHECK_THAT(
      verdict.context,
      ContainsSubstring(
          "rank 0 waited there. Rank 1 came last to collective 6"));
}

TEST_CASE("a flight's verdict shows both sides of a mismatch", "[bench]") {
  const auto verdict = judge_flight(
      {failed_record(0, {sum_entry(6, kDone), sum_entry(7, kFailed)}, {}),
       failed_record(1, {sum_entry(6, kDone), sum_entry(7, kFailed, "4")}, {}),
       failed_record(2, {sum_entry(6, kDone), sum_entry(7, kFailed)}, {})});
  CHECK_FALSE(verdict.is_healthy);
  CHECK(
      verdict.finding ==
      "mismatch at collective 7: rank 1 called all-reduce (sum) of Float [4], "
      "ranks 0 and 2 called all-reduce (sum) of Float [5]");
}

TEST_CASE("a flight's verdict finds a rank that is behind", "[bench]") {
  const auto verdict = judge_flight(
      {record_of(0, {sum_entry(6, kDone), sum_entry(7, kStarted)}),
       record_of(1, {sum_entry(5, kDone)}),
       record_of(2, {sum_entry(6, kDone), sum_entry(7, kStarted)})});
  CHECK_FALSE(verdict.is_healthy);
  CHECK_THAT(
      verdict.finding,
      ContainsSubstring("rank 1 is behind") &&
          ContainsSubstring("collective 7, all-reduce"));
  CHECK_THAT(
      verdict.context,
      ContainsSubstring("Rank 1 came last to collective 5"));
}

TEST_CASE("a flight's verdict is good for a job that runs", "[bench]") {
  const auto verdict = judge_flight(
      {record_of(0, {sum_entry(6, kDone)}),
       record_of(1, {sum_entry(6, kDone)}),
       record_of(2, {sum_entry(6, kDone)})});
  CHECK(verdict.is_healthy);
  CHECK_THAT(verdict.finding, ContainsSubstring("all 3 ranks have finished"));
}

TEST_CASE(
    "a flight's verdict looks at the group that failed first",
    "[bench]") {
  auto late = failed_record(0, {sum_entry(1, kFailed)}, {2});
  late.group = "b";
  late.written_us = 1000;
  const auto verdict =
      judge_flight({late, failed_record(0, {sum_entry(7, kFailed)}, {1})});
  CHECK_THAT(
      verdict.finding,
      ContainsSubstring("rank 1 is missing at collective 7"));
}

TEST_CASE("tandem doctor --flight prints two lines", "[bench]") {
  const tandem::testing::TemporaryDirectory folder;
  const auto empty = run_tandem({"doctor", "--flight", folder.path().string()});
  CHECK(empty.code == 2);
  CHECK_THAT(empty.err, ContainsSubstring("flight-*.json"));
  std::ofstream(folder.path() / "flight-a-rank-0.json")
      << tandem::comm::format_flight_record(
             failed_record(0, {sum_entry(7, kFailed)}, {1}));
  const auto ended = run_tandem({"doctor", "--flight", folder.path().string()});
  CHECK(ended.code == 1);
  CHECK(
      ended.out ==
      "rank 1 is missing at collective 7, all-reduce (sum) of Float [5], for "
      "bucket 7\n"
      "rank 0 waited there. Rank 1 left no record. See what rank 1 printed "
      "last\n");
}
