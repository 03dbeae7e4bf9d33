#include <chrono>
#include <string>
#include <thread>

#include <torch/torch.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/errors.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"
#include "warnings.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::test::count_warnings;
using tandem::test::expect_warning;
using tandem::test::watch_warnings;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::RunRanksOptions;

namespace {

constexpr auto kLate = "still no sign of rank 1";

RunRanksOptions warns_after(std::chrono::milliseconds limit) {
  return RunRanksOptions().diagnostics(
      comm::Diagnostics().stall_warning(limit));
}

/// Returns once the warning has come, at most after ten seconds.
void await_warning(const char* words) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (count_warnings(words) == 0 &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
}

} // namespace

TEST_CASE("a late rank is named by one warning", "[comm][FT-14]") {
  run_ranks(
      3,
      [](RankContext& context) {
        watch_warnings();
        expect_warning(kLate);
        auto& group = *context.group();
        auto tensor = torch::ones({4});
        for (int round = 0; round < 2; ++round) {
          if (context.rank() == 1 && round == 0) {
            await_warning(kLate);
          }
          const auto work = group.all_reduce_async(tensor);
          group.wait(work, "all-reduce of bucket 4");
        }
        TORCH_CHECK(tensor.sum().item<double>() == 36);
      },
      warns_after(2s));
  CHECK(count_warnings(kLate) == 1);
  CHECK(count_warnings("[comm rank 0/3] all-reduce of bucket 4 (coll") == 1);
}

TEST_CASE("a rank that waits is not taken for late", "[comm][FT-14]") {
  // Rank 1 comes too late to have waited for the limit itself when rank 0 warns
  // of rank 2.
  run_ranks(
      3,
      [&](RankContext& context) {
        watch_warnings();
        expect_warning("still no sign of");
        if (context.rank() == 1) {
          while (!context.group()->store()->check({"stall/1/began"})) {
            std::this_thread::yield();
          }
        }
        if (context.rank() == 2) {
          await_warning("still no sign of rank 2");
        }
        context.group()->barrier();
      },
      warns_after(2s));
  CHECK(count_warnings("still no sign of rank 2") == 1);
}
