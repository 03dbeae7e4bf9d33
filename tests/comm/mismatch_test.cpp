// TANDEM_DEBUG=detail: collectives that differ are found before they run.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/diagnostics.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/errors.h>
#include <tandem/testing/error_text.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"

namespace comm = tandem::comm;
using namespace std::chrono_literals;
using tandem::testing::holds;
using tandem::testing::missing_parts;
using tandem::testing::RankContext;
using tandem::testing::run_ranks;
using tandem::testing::RunRanksOptions;
using tandem::testing::try_ranks;

namespace {

using Call = std::function<void(comm::ProcessGroup&)>;

struct Mismatch {
  Call on_most;
  Call on_last;
  std::string most;
  std::string last;
};

Call reduces(at::Tensor tensor, comm::ReduceOp op = comm::ReduceOp::kSum) {
  return [=](comm::ProcessGroup& group) {
    auto own = tensor.clone();
    group.all_reduce(own, op);
  };
}

Call broadcasts(int64_t root) {
  return [=](comm::ProcessGroup& group) {
    auto own = torch::ones({4});
    group.broadcast(own, root);
  };
}

std::vector<Mismatch> mismatches() {
  const auto sum = reduces(torch::ones({4}));
  const std::string sum_text = "all-reduce (sum) of Float [4]";
  return {
      {sum, broadcasts(0), sum_text, "broadcast of Float [4] from rank 0"},
      {sum,
       reduces(torch::ones({2, 2})),
       sum_text,
       "all-reduce (sum) of Float [2, 2]"},
      {sum,
       reduces(torch::ones({4}, at::kDouble)),
       sum_text,
       "all-reduce (sum) of Double [4]"},
      {sum,
       reduces(torch::ones({4}), comm::ReduceOp::kMax),
       sum_text,
       "all-reduce (max) of Float [4]"},
      {broadcasts(0),
       broadcasts(1),
       "broadcast of Float [4] from rank 0",
       "broadcast of Float [4] from rank 1"},
      {sum,
       [](comm::ProcessGroup& group) { group.barrier(); },
       sum_text,
       "got barrier"}};
}

RunRanksOptions in_detail() {
  return RunRanksOptions().timeout(5s).diagnostics(
      comm::Diagnostics().check_collectives(true));
}

} // namespace

TEST_CASE("detail shows both sides of a mismatch to every rank", "[comm]") {
  for (const auto& mismatch : mismatches()) {
    CAPTURE(mismatch.last);
    const auto errors = try_ranks(
        3,
        [&](RankContext& context) {
          auto& group = *context.group();
          group.barrier();
          (context.rank() == 2 ? mismatch.on_last : mismatch.on_most)(group);
        },
        in_detail());
    for (const auto& error : errors) {
      CHECK(holds<tandem::ConfigError>(error));
      CHECK(missing_parts(
                tandem::message_of(error),
                {"collective 2",
                 "expected " + mismatch.most + " as on ranks 0 and 1",
                 mismatch.last,
                 "on rank 2"})
                .empty());
    }
  }
}

TEST_CASE("a group is usable after a mismatch that detail found", "[comm]") {
  run_ranks(
      2,
      [](RankContext& context) {
        auto& group = *context.group();
        auto tensor = torch::ones({context.rank() + 1});
        try {
          group.all_reduce(tensor);
          TORCH_CHECK(false, "the mismatch was not found");
        } catch (const tandem::ConfigError&) {
          tensor = torch::ones({3});
        }
        group.all_reduce(tensor);
        TORCH_CHECK(tensor.sum().item<double>() == 6);
      },
      in_detail());
}

TEST_CASE("detail names a rank that starts too few collectives", "[comm]") {
  const auto errors = try_ranks(
      2,
      [](RankContext& context) {
        auto& group = *context.group();
        group.barrier();
        if (context.rank() == 0) {
          group.barrier();
        }
      },
      in_detail().timeout(400ms));
  CHECK(holds<tandem::TimeoutError>(errors[0]));
  CHECK(missing_parts(
            tandem::message_of(errors[0]),
            {"barrier", "no answer from rank 1", "collective 2"})
            .empty());
}
