#include "harness/bench_run.h"

#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tandem/core/order_statistics.h>

#include "harness/mode_checks.h"
#include "harness/mode_group.h"
#include "harness/mode_row.h"
#include "harness/worker_channel.h"

namespace tandem::bench {

namespace {

int64_t num_processes(const Mode& mode) {
  return has_ranks(mode.strategy) ? mode.workers : 1;
}

std::string outcome_line(const train::ResultRow& row) {
  if (row.verify_max_abs_diff) {
    return fmt::format(
        "verified {}: differs from the bare network by {:.1e} at most\n",
        row.name(),
        *row.verify_max_abs_diff);
  }
  return fmt::format(
      "measured {}: gradients differ from the mean by {:.1e} of its norm\n",
      row.name(),
      row.step_gradient_error.value());
}

/// The modes of one run, each with its processes and its row.
class Run {
 public:
  explicit Run(const BenchPlan& plan) : plan_(plan), store_(serve_store()) {
    // One after another, so that the ones to come do not disturb.
    ModeChecks checks(plan.recipe.batch);
    for (const auto& mode : plan.modes) {
      start(mode, checks);
    }
  }

  std::vector<train::ResultRow> time() {
    for (const auto& turn : plan_turns(rows_.size(), plan_.turns)) {
      take(turn);
    }
    for (const auto& group : groups_) {
      group->end();
    }
    return std::move(rows_);
  }

 private:
  void start(const Mode& mode, ModeChecks& checks) {
    const auto index = static_cast<int64_t>(groups_.size());
    const auto name = mode_name(mode, plan_.recipe);
    groups_.push_back(std::make_unique<ModeGroup>(
        store_,
        index,
        num_processes(mode),
        name,
        plan_.worker_arguments(mode, index, port_of(*store_))));
    const auto reports = groups_.back()->await_ready();
    checks.check(name, mode.activity, reports);
    rows_.push_back(make_mode_row(mode, plan_.recipe, reports));
    std::cerr << outcome_line(rows_.back());
  }

  void take(const Turn& turn) {
    auto& row = rows_[turn.mode];
    add_turn(
        groups_[turn.mode]->run_turn({turn.untimed_steps, turn.timed_steps}),
        row);
    const auto done = static_cast<int64_t>(row.step_ms.size());
    if (done == plan_.turns.steps) {
      set_samples_per_s(row);
    }
    std::cerr << fmt::format(
        "timed {}: step {}/{}, median {:.2f} ms\n",
        row.name(),
        done,
        plan_.turns.steps,
        order_statistics(row.step_ms).p50);
  }

  const BenchPlan& plan_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<std::unique_ptr<ModeGroup>> groups_;
  std::vector<train::ResultRow> rows_;
};

} // namespace

std::vector<train::ResultRow> run_modes(const BenchPlan& plan) {
  return Run(plan).time();
}

} // namespace tandem::bench
