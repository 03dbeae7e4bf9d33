#include <tandem/comm/process_group.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/backend.h>
#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::holds;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::RunRanksOptions;
using tandem::testing::thrown_text;
using tandem::testing::try_ranks;

namespace {

/// Has rank 1 stay away from a collective until the others have failed.
class StayingAway {
 public:
  template <typename Body>
  void run(RankContext& context, Body body) {
    if (context.rank() == 1) {
      over_.get_future().wait();
      return;
    }
    try {
      body();
    } catch (...) {
      note_failed();
      throw;
    }
    note_failed();
  }

 private:
  void note_failed() {
    if (++num_failed_ == 2) {
      over_.set_value();
    }
  }

  std::atomic<int> num_failed_{0};
  std::promise<void> over_;
};

} // namespace

TEST_CASE("a collective names the rank that does not come in time", "[comm]") {
  StayingAway away;
  const auto errors = try_ranks(
      3,
      [&](RankContext& context) {
        away.run(context, [&] {
          auto& group = *context.group();
          const auto work = group.all_reduce_async(torch::ones({1000}));
          group.wait(work, "all-reduce of bucket 4");
        });
      },
      RunRanksOptions().timeout(400ms));
  for (const size_t rank : {0, 2}) {
    REQUIRE(holds<tandem::TimeoutError>(errors[rank]));
    const auto text = tandem::message_of(errors[rank]);
    CAPTURE(text);
    CHECK(missing_parts(
              text,
              {"[comm rank " + std::to_string(rank) + "/3]",
               "all-reduce of bucket 4",
               "400 ms",
               "no answer from rank 1"})
              .empty());
    CHECK(text.find("rank 2 (") == std::string::npos);
  }
}

TEST_CASE("a rank that comes too late is told that others gave up", "[comm]") {
  std::promise<void> failed;
  const auto errors = try_ranks(
      2,
      [&](RankContext& context) {
        if (context.rank() == 1) {
          failed.get_future().wait();
        }
        const auto text = thrown_text<tandem::TimeoutError>(
            [&] { context.group()->barrier(); });
        if (context.rank() == 0) {
          failed.set_value();
        }
        throw tandem::Error(text.value_or("nothing thrown"));
      },
      RunRanksOptions().timeout(300ms));
  CHECK(missing_parts(
            tandem::message_of(errors[1]),
            {"after others had given up"})
            .empty());
}

TEST_CASE("a rank that leaves fails the others at once", "[comm]") {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = try_ranks(4, [](RankContext& context) {
    if (context.rank() == 1) {
      throw tandem::Error("gone");
    }
    // More than Gloo has threads for, so that some only wait in its queue.
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int i = 0; i < 6; ++i) {
      works.push_back(context.group()->all_reduce_async(torch::ones({100000})));
    }
    for (const auto& work : works) {
      context.group()->wait(work, "all-reduce");
    }
  });
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  for (const size_t rank : {0, 2, 3}) {
    REQUIRE(holds<tandem::PeerError>(errors[rank]));
    CHECK_FALSE(holds<tandem::TimeoutError>(errors[rank]));
    CHECK(missing_parts(
              tandem::message_of(errors[rank]),
              {"no answer from rank 1 ("})
              .empty());
  }
}

TEST_CASE("a group that has failed stays failed", "[comm]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    if (context.rank() == 1) {
      throw tandem::Error("gone");
    }
    auto& group = *context.group();
    const auto first = thrown_text<tandem::PeerError>([&] { group.barrier(); });
    const auto begin = std::chrono::steady_clock::now();
    const auto second =
        thrown_text<tandem::PeerError>([&] { group.barrier(); });
    if (std::chrono::steady_clock::now() - begin > 500ms) {
      throw tandem::Error("took too long");
    }
    throw tandem::Error(second.value() + " | " + first.value());
  });
  CHECK(missing_parts(
            tandem::message_of(errors[0]),
            {"expected a working group", "no answer from rank 1"})
            .empty());
}

TEST_CASE("a group's end does not wait for peers", "[comm]") {
  std::promise<void> dropped;
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = try_ranks(2, [&](RankContext& context) {
    if (context.rank() == 1) {
      dropped.get_future().wait();
      return;
    }
    // Nobody will ever answer these.
    for (int i = 0; i < 4; ++i) {
      context.group()->all_reduce_async(torch::ones({100000}));
    }
    dropped.set_value();
    throw tandem::Error("drops its group");
  });
  CHECK(errors[0]);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
}

namespace {

/// This process's threads by id, and whether each keeps SIGPIPE from itself.
std::map<std::string, bool> blocks_sigpipe_by_thread() {
  std::map<std::string, bool> threads;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigBlk:")) {
        const auto mask = std::stoull(line.substr(7), nullptr, 16);
        threads[task.path().filename()] = (mask >> (SIGPIPE - 1) & 1) != 0;
      }
    }
  }
  return threads;
}

} // namespace

TEST_CASE("a group's threads survive writing to a dead peer", "[comm]") {
  const auto before = blocks_sigpipe_by_thread();
  const auto group = comm::connect_group({});
  const auto after = blocks_sigpipe_by_thread();
  CHECK(after.size() > before.size());
  for (const auto& [thread, blocks] : after) {
    CAPTURE(thread);
    const auto known = before.find(thread);
    CHECK(blocks == (known == before.end() || known->second));
  }
}

namespace {

TANDEM_RANK_FUNCTION(survives_a_killed_peer) {
  comm::init_process_group();
  auto tensor = torch::ones({1000});
  comm::all_reduce(tensor);
  process.doing("killed here");
  if (process.rank() == 1) {
    std::this_thread::sleep_for(1min);
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto text =
      thrown_text<tandem::PeerError>([&] { comm::all_reduce(tensor); });
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  return {
      {{"seconds", torch::tensor(seconds.count())}},
      text.value_or("nothing thrown")};
}

} // namespace

TEST_CASE("a killed rank is named by the others", "[comm][processes]") {
  const auto outcomes = tandem::testing::try_processes(
      3,
      "survives_a_killed_peer",
      tandem::testing::RunProcessesOptions().kill(
          tandem::testing::KillRank{1, "killed here"}));
  CHECK(outcomes[1].status.signal == SIGKILL);
  for (const size_t rank : {0, 2}) {
    CAPTURE(outcomes[rank].error);
    REQUIRE(outcomes[rank].success());
    CHECK(
        missing_parts(outcomes[rank].result->text, {"no answer from rank 1 ("})
            .empty());
    CHECK(outcomes[rank].result->tensors.at("seconds").item<double>() < 10);
  }
}
