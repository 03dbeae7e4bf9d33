#include <tandem/testing/rank_threads.h>

#include <future>
#include <stdexcept>

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include <torch/torch.h>

#include <tandem/comm/comm.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_processes.h>
#include <tandem/testing/temporary_directory.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::thrown_text;

TEST_CASE("run_ranks returns each rank's result in order", "[testing]") {
  for (const int64_t world_size : {1, 2, 3, 5}) {
    const auto results = run_ranks(world_size, [](RankContext& context) {
      return std::make_pair(context.rank(), context.world_size());
    });
    REQUIRE(results.size() == static_cast<size_t>(world_size));
    for (int64_t rank = 0; rank < world_size; ++rank) {
      CHECK(results[rank] == std::make_pair(rank, world_size));
    }
  }
}

TEST_CASE("run_ranks makes the context's group the thread's", "[testing]") {
  run_ranks(2, [](RankContext& context) {
    if (comm::default_group() != context.group()) {
      throw tandem::Error("another group");
    }
  });
  CHECK_FALSE(comm::is_initialized());
}

TEST_CASE("run_ranks throws the first error with its rank", "[testing]") {
  // The others fail too, since rank 2 is gone from their barrier.
  const auto text = thrown_text<tandem::ConfigError>([] {
    run_ranks(3, [](RankContext& context) {
      if (context.rank() == 2) {
        throw tandem::ConfigError("mine");
      }
      comm::barrier();
    });
  });
  REQUIRE(text.has_value());
  CHECK(missing_parts(*text, {"mine", "rank 2"}).empty());
}

TEST_CASE("run_ranks lets foreign exceptions through", "[testing]") {
  CHECK_THROWS_AS(
      run_ranks(1, [](RankContext&) { throw std::out_of_range("foreign"); }),
      std::out_of_range);
}

TEST_CASE("try_ranks returns each rank's error", "[testing]") {
  const auto errors = tandem::testing::try_ranks(3, [](RankContext& context) {
    if (context.rank() == 1) {
      throw tandem::ConfigError("mine");
    }
  });
  CHECK_FALSE(errors[0]);
  CHECK(tandem::testing::holds<tandem::ConfigError>(errors[1]));
  CHECK_FALSE(errors[2]);
}

TEST_CASE("run_ranks refuses an empty world", "[testing]") {
  CHECK_THROWS_AS(run_ranks(0, [](RankContext&) {}), tandem::ConfigError);
}

namespace {

/// Sends stderr to the file that the argument names, then misses a deadline.
TANDEM_RANK_FUNCTION(misses_thread_deadline) {
  const int file =
      ::open(process.argument().c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(file, STDERR_FILENO);
  run_ranks(
      2,
      [](RankContext& context) {
        if (context.rank() == 1) {
          context.doing("waiting for Godot");
          std::promise<void>().get_future().wait();
        }
      },
      tandem::testing::RunRanksOptions().deadline(300ms));
  return {};
}

} // namespace

TEST_CASE(
    "run_ranks ends the process at the deadline and says what ranks did",
    "[testing][processes]") {
  const tandem::testing::TemporaryDirectory directory;
  const auto log = directory.path() / "stderr";
  const auto outcomes = tandem::testing::try_processes(
      1,
      "misses_thread_deadline",
      tandem::testing::RunProcessesOptions().argument(log));
  CHECK(outcomes[0].status.code == tandem::testing::kDeadlineExitCode);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  CAPTURE(text.str());
  CHECK(missing_parts(
            text.str(),
            {"deadline of 300 ms",
             "rank 0 ended",
             "rank 1 was in: waiting "
             "for Godot"})
            .empty());
}
