#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include <tandem/comm/comm.h>
#include <tandem/comm/join.h>
#include <tandem/core/errors.h>
#include <tandem/testing/rank_threads.h>

#include "tandem_catch.h"
#include "text.h"

namespace {

using namespace tandem;
using comm::Join;
using comm::JoinOptions;
using test::contains;
using testing::RankContext;
using testing::run_ranks;
using testing::try_ranks;

constexpr int64_t kBaseInputs = 3;

/// Adds ones over the ranks in each iteration; joined ranks add zeros. When all
/// have joined every rank takes the last joiner's total.
class Counter final : public comm::Joinable {
 public:
  explicit Counter(std::shared_ptr<comm::ProcessGroup> group)
      : group_(std::move(group)) {}

  /// Number of ranks that take part.
  int64_t step() {
    Join::notify(*this);
    return add(1);
  }

  std::unique_ptr<comm::JoinHook> join_hook(const JoinOptions&) override {
    return std::make_unique<Hook>(*this);
  }
  std::shared_ptr<comm::ProcessGroup> join_process_group() const override {
    return group_;
  }

  int64_t num_shadows = 0;
  std::vector<bool> ends;

 private:
  class Hook final : public comm::JoinHook {
   public:
    explicit Hook(Counter& counter) : counter_(counter) {}
    void main_hook() override {
      ++counter_.num_shadows;
      counter_.add(0);
    }
    void post_hook(bool is_last_joiner) override {
      counter_.ends.push_back(is_last_joiner);
    }

   private:
    Counter& counter_;
  };

  int64_t add(int64_t own) {
    auto ones = torch::full({1}, own, at::kLong);
    group_->all_reduce(ones);
    return ones.item<int64_t>();
  }

  std::shared_ptr<comm::ProcessGroup> group_;
};

struct Outcome {
  int64_t total = 0;
  int64_t num_shadows = 0;
  std::vector<bool> ends;
};

/// Rank r has 3 + r inputs.
std::vector<Outcome> run_counters(
    int64_t world_size,
    size_t num_counters,
    const JoinOptions& options = {}) {
  return run_ranks(world_size, [&](RankContext& context) {
    std::vector<std::unique_ptr<Counter>> counters;
    std::vector<comm::Joinable*> joinables;
    for (size_t i = 0; i < num_counters; ++i) {
      counters.push_back(std::make_unique<Counter>(context.group()));
      joinables.push_back(counters.back().get());
    }
    Outcome outcome;
    comm::with_join(
        joinables,
        [&] {
          for (int64_t i = 0; i < kBaseInputs + context.rank(); ++i) {
            for (auto& counter : counters) {
              outcome.total += counter->step();
            }
          }
        },
        options);
    outcome.num_shadows = counters.back()->num_shadows;
    outcome.ends = counters.back()->ends;
    return outcome;
  });
}

/// What rank r adds up: in iteration i take part those with more than i inputs.
int64_t expected_total(int64_t world_size, int64_t rank) {
  int64_t total = 0;
  for (int64_t i = 0; i < kBaseInputs + rank; ++i) {
    for (int64_t other = 0; other < world_size; ++other) {
      total += i < kBaseInputs + other ? 1 : 0;
    }
  }
  return total;
}

} // namespace

TEST_CASE(
    "ranks that have joined take part without counting",
    "[comm][JN-01]") {
  for (const int64_t world_size : {1, 2, 3, 5}) {
    const auto outcomes = run_counters(world_size, 1);
    for (int64_t rank = 0; rank < world_size; ++rank) {
      const auto& outcome = outcomes[rank];
      CHECK(outcome.total == expected_total(world_size, rank));
      CHECK(outcome.num_shadows == world_size - 1 - rank);
      CHECK(outcome.ends == std::vector<bool>{rank == world_size - 1});
    }
  }
}

TEST_CASE("each of several joinables has its turn", "[comm][JN-08]") {
  const auto outcomes = run_counters(3, 3);
  for (int64_t rank = 0; rank < 3; ++rank) {
    CHECK(outcomes[rank].total == 3 * expected_total(3, rank));
    CHECK(outcomes[rank].num_shadows == 2 - rank);
  }
}

TEST_CASE("an early end throws on every rank at one step", "[comm][JN-06]") {
  std::vector<int64_t> num_steps(3);
  const auto errors = try_ranks(3, [&](RankContext& context) {
    Counter counter(context.group());
    comm::with_join(
        {&counter},
        [&] {
          for (int64_t i = 0; i < kBaseInputs + context.rank(); ++i) {
            counter.step();
            ++num_steps[context.rank()];
          }
        },
        JoinOptions().throw_on_early_termination(true));
  });
  CHECK(num_steps == std::vector<int64_t>(3, kBaseInputs));
  CHECK(contains(message_of(errors[0]), "none left on this rank, 0"));
  for (size_t rank = 0; rank < 3; ++rank) {
    CHECK_THROWS_AS(std::rethrow_exception(errors[rank]), PeerError);
    CHECK(
        (rank == 0) !=
        contains(message_of(errors[rank]), "at least one rank that has none"));
  }
}

TEST_CASE("even inputs end without an early end", "[comm][JN-06]") {
  run_ranks(2, [](RankContext& context) {
    Counter counter(context.group());
    comm::with_join(
        {&counter},
        [&] {
          for (int i = 0; i < 3; ++i) {
            TORCH_CHECK(counter.step() == 2);
          }
        },
        JoinOptions().throw_on_early_termination(true));
  });
}

TEST_CASE("exceptions inside a join are the caller's", "[comm][JN-07]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    Counter counter(context.group());
    comm::with_join({&counter}, [&] {
      counter.step();
      throw std::out_of_range("wonderful");
    });
  });
  for (const auto& error : errors) {
    CHECK_THROWS_AS(std::rethrow_exception(error), std::out_of_range);
  }
}

TEST_CASE("a join that is not enabled does nothing", "[comm][JN-07]") {
  run_ranks(2, [](RankContext& context) {
    Counter counter(context.group());
    comm::with_join(
        {&counter},
        [&] {
          TORCH_CHECK(Join::options_of(counter) == nullptr);
          TORCH_CHECK(counter.step() == 2);
        },
        JoinOptions().enable(false));
    TORCH_CHECK(counter.ends.empty());
  });
}

TEST_CASE("a joinable may join again, but not twice at once", "[comm][JN-07]") {
  run_ranks(2, [](RankContext& context) {
    Counter counter(context.group());
    for (int round = 0; round < 2; ++round) {
      Join join({&counter});
      TORCH_CHECK(contains(
          test::message_thrown_by([&] { Join({&counter}); }),
          "one Join at a time"));
      join.finish();
    }
  });
}

TEST_CASE("joinables of different groups are refused", "[comm][JN-08]") {
  const auto errors = try_ranks(2, [](RankContext& context) {
    Counter counter(context.group());
    Counter other(nullptr);
    Join({&counter, &other});
  });
  CHECK(contains(message_of(errors[0]), "one process group"));
  CHECK_THROWS_AS(Join({}), ConfigError);
}
