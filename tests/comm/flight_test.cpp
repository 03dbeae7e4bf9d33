// The files that ranks leave when a collective fails.
#include <tandem/comm/flight_record.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::RunRanksOptions;
using tandem::testing::TemporaryDirectory;
using tandem::testing::try_ranks;

namespace {

std::map<int64_t, comm::FlightRecord> records_in(
    const std::filesystem::path& folder) {
  std::map<int64_t, comm::FlightRecord> records;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path());
    const std::string text(std::istreambuf_iterator<char>(stream), {});
    auto record = comm::parse_flight_record(text, file.path().string());
    const auto rank = record.rank;
    records.emplace(rank, std::move(record));
  }
  return records;
}

/// Waits for the record of `rank`, at most ten seconds.
void await_record(const std::filesystem::path& folder, int64_t rank) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (std::chrono::steady_clock::now() < deadline) {
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().string().ends_with(
              "-rank-" + std::to_string(rank) + ".json")) {
        return;
      }
    }
    std::this_thread::yield();
  }
}

RunRanksOptions recording_to(const std::filesystem::path& folder) {
  return RunRanksOptions().diagnostics(
      comm::Diagnostics().flight_dir(folder.string()));
}

} // namespace

TEST_CASE("a time-out leaves a record of each rank", "[comm][FT-11]") {
  const TemporaryDirectory parent;
  const auto folder = parent.path() / "made here";
  std::promise<void> over;
  const auto errors = try_ranks(
      2,
      [&](RankContext& context) {
        auto& group = *context.group();
        group.barrier();
        if (context.rank() == 1) {
          over.get_future().wait();
          await_record(folder, 1);
          return;
        }
        try {
          group.wait(
              group.all_reduce_async(torch::ones({5, 2})),
              "all-reduce of bucket 4");
        } catch (...) {
          over.set_value();
          throw;
        }
      },
      recording_to(folder).timeout(400ms));
  const auto records = records_in(folder);
  REQUIRE(records.size() == 2);
  CHECK(records.at(1).reason == "peer");
  REQUIRE(records.at(1).entries.size() == 1);
  CHECK(records.at(1).entries[0].operation == "barrier");
  const auto& record = records.at(0);
  CHECK(record.size == 2);
  CHECK(record.reason == "timeout");
  CHECK(record.missing == std::vector<int64_t>{1});
  CHECK(record.failure == tandem::message_of(errors[0]));
  REQUIRE(record.entries.size() == 2);
  CHECK(record.entries[0].operation == "barrier");
  CHECK(record.entries[0].state == comm::FlightState::kFinished);
  CHECK(record.entries[1].sequence == 2);
  CHECK(record.entries[1].call == "all-reduce (sum) of Float [5, 2]");
  CHECK(record.entries[1].what == "all-reduce of bucket 4");
  CHECK(record.entries[1].state == comm::FlightState::kFailed);
}

TEST_CASE("an error leaves records under one name of group", "[comm][FT-11]") {
  const TemporaryDirectory folder;
  try_ranks(
      3,
      [&](RankContext& context) {
        if (context.rank() == 2) {
          throw tandem::Error("gone");
        }
        context.group()->barrier();
      },
      recording_to(folder.path()));
  const auto records = records_in(folder.path());
  REQUIRE(records.size() == 2);
  CHECK(records.at(0).reason == "error");
  CHECK(records.at(1).reason == "error");
  CHECK(records.at(0).group == records.at(1).group);
  CHECK(records.at(1).missing == std::vector<int64_t>{2});
}

TEST_CASE("a roll call tells where each rank was", "[comm][FT-04]") {
  const auto errors = try_ranks(
      2,
      [&](RankContext& context) {
        auto& group = *context.group();
        group.barrier();
        if (context.rank() == 0) {
          group.wait(group.all_reduce_async(torch::ones({5})), "bucket 1");
          group.wait(group.all_reduce_async(torch::ones({6})), "bucket 2");
        } else {
          group.wait(group.all_reduce_async(torch::ones({5})), "bucket 1");
        }
        throw tandem::Error("rank 1 has gone on");
      },
      RunRanksOptions().timeout(400ms));
  CHECK(missing_parts(
            tandem::message_of(errors[0]),
            {"no answer from rank 1",
             "rank 0 was at bucket 2 (collective 3: all-reduce (sum) of Float "
             "[6])"})
            .empty());
}
