#include <tandem/comm/agreement.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"
#include "unused_port.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::holds;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::RunRanksOptions;
using tandem::testing::try_ranks;

namespace {

using Statements = std::vector<comm::Statement>;
using Errors = std::vector<std::exception_ptr>;

/// Each rank states what its entry says.
Errors agree(const std::vector<Statements>& statements) {
  return try_ranks(
      static_cast<int64_t>(statements.size()),
      [&](RankContext& context) {
        comm::agree_or_throw(
            *context.group(),
            "ddp",
            statements[context.rank()]);
      });
}

template <typename Exception>
void check_all(const Errors& errors, const std::vector<std::string>& parts) {
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    CAPTURE(rank);
    REQUIRE(holds<Exception>(errors[rank]));
    const auto text = tandem::message_of(errors[rank]);
    CAPTURE(text);
    CHECK(missing_parts(text, parts).empty());
    CHECK(
        text.rfind(
            "[ddp rank " + std::to_string(rank) + "/" +
                std::to_string(errors.size()) + "] ",
            0) == 0);
  }
}

} // namespace

TEST_CASE("agreement passes if all ranks state the same", "[comm]") {
  const Statements same{{"parameter 'a'", "[1]"}, {"option \"x\"\n", "é\x01"}};
  for (const size_t world_size : {1, 2, 3}) {
    for (const auto& error : agree(std::vector(world_size, same))) {
      CHECK_FALSE(error);
    }
  }
  for (const auto& error : agree({{}, {}})) {
    CHECK_FALSE(error);
  }
}

TEST_CASE("agreement names the first difference on every rank", "[comm]") {
  const Statements usual{
      {"parameter 'fc.weight'", "float32 [10, 20]"},
      {"option cap", "25"}};
  const Statements other{
      {"parameter 'fc.weight'", "float32 [20, 10]"},
      {"option cap", "1"}};
  check_all<tandem::ConfigError>(
      agree({usual, usual, other, other}),
      {"parameter 'fc.weight'",
       "expected float32 [10, 20] as on rank 0",
       "got float32 [20, 10] on rank 2"});
}

TEST_CASE("agreement names a statement that a rank has not made", "[comm]") {
  const Statements longer{{"parameter 'a'", "[1]"}, {"parameter 'b'", "[2]"}};
  const Statements shorter{{"parameter 'a'", "[1]"}};
  const Statements renamed{{"parameter 'a'", "[1]"}, {"parameter 'c'", "[2]"}};
  check_all<tandem::ConfigError>(
      agree({longer, shorter}),
      {"parameter 'b': expected parameter 'b' ([2])", "got nothing more"});
  check_all<tandem::ConfigError>(
      agree({shorter, longer}),
      {"parameter 'b': expected nothing more", "got parameter 'b' ([2])"});
  check_all<tandem::ConfigError>(
      agree({longer, renamed}),
      {"expected parameter 'b' ([2])", "got parameter 'c' ([2]) on rank 1"});
}

TEST_CASE("agreement tells all ranks of one's failure in time", "[comm]") {
  // Rank 2 never states anything: nobody may wait for it.
  for (const int64_t failing : {0, 1}) {
    CAPTURE(failing);
    const auto begin = std::chrono::steady_clock::now();
    auto errors = try_ranks(3, [&](RankContext& context) {
      if (context.rank() == failing) {
        comm::report_failure(*context.group(), "ddp", "its own check");
        throw tandem::ConfigError("[ddp rank x] its own check");
      }
      if (context.rank() != 2) {
        comm::agree_or_throw(*context.group(), "ddp", {{"a", "1"}});
      }
    });
    CHECK(std::chrono::steady_clock::now() - begin < 2s);
    const auto waiting = static_cast<size_t>(1 - failing);
    REQUIRE(holds<tandem::PeerError>(errors[waiting]));
    CHECK(missing_parts(
              tandem::message_of(errors[waiting]),
              {"rank " + std::to_string(failing) + " failed: its own check"})
              .empty());
    CHECK(holds<tandem::ConfigError>(errors[static_cast<size_t>(failing)]));
  }
}

TEST_CASE("a failing rank 0 stays until the others have heard", "[comm]") {
  // It may host the store, and exit next.
  std::atomic<bool> came{false};
  const auto errors = try_ranks(2, [&](RankContext& context) {
    auto& group = *context.group();
    if (context.rank() == 0) {
      comm::report_failure(group, "ddp", "its own check");
      if (!came) {
        throw tandem::Error("left alone");
      }
      return;
    }
    std::this_thread::sleep_for(100ms); // what rank 0 has to wait for
    came = true;
    comm::agree_or_throw(group, "ddp", {});
  });
  CHECK_FALSE(errors[0]);
  CHECK(holds<tandem::PeerError>(errors[1]));
}

TEST_CASE("agreement names the ranks that do not answer", "[comm]") {
  const auto errors = try_ranks(
      3,
      [](RankContext& context) {
        if (context.rank() != 1) {
          comm::agree_or_throw(*context.group(), "ddp", {{"a", "1"}});
        }
      },
      RunRanksOptions().startup_timeout(500ms));
  for (const size_t rank : {0, 2}) {
    REQUIRE(holds<tandem::TimeoutError>(errors[rank]));
    CHECK(missing_parts(tandem::message_of(errors[rank]), {"rank 1", "500 ms"})
              .empty());
  }
}

TEST_CASE("agreements follow one another in one group", "[comm]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    auto& group = *context.group();
    comm::agree_or_throw(group, "ddp", {{"a", "1"}});
    comm::agree_or_throw(group, "ddp", {{"a", "2"}});
    comm::agree_or_throw(group, "ddp", {{"a", std::to_string(context.rank())}});
  });
  check_all<tandem::ConfigError>(errors, {"a: expected 0", "got 1"});
}

namespace {

TANDEM_RANK_FUNCTION(disagrees_and_exits) {
  const auto group = comm::init_process_group();
  comm::agree_or_throw(
      *group,
      "ddp",
      {{"a", process.rank() == 2 ? "other" : "usual"}});
  return {};
}

} // namespace

TEST_CASE(
    "agreement is heard by all though rank 0 takes its store along",
    "[comm][processes]") {
  const auto outcomes = tandem::testing::try_processes(
      4,
      "disagrees_and_exits",
      tandem::testing::RunProcessesOptions().environment(
          {{"TORCHELASTIC_USE_AGENT_STORE", "False"},
           {"MASTER_PORT", tandem::test::unused_port()}}));
  for (const auto& outcome : outcomes) {
    CAPTURE(outcome.error);
    CHECK(missing_parts(
              outcome.error,
              {"a: expected usual as on rank 0, got other on rank 2"})
              .empty());
  }
}
