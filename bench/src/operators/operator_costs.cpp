#include "operators/operator_costs.h"

#include <array>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <tandem/core/named_tensors.h>

#include "harness/learner.h"
#include "harness/mode_checks.h"
#include "harness/timed_activity.h"
#include "operators/operator_cases.h"
#include "placement/sim_devices.h"

namespace tandem::bench {

namespace {

constexpr int64_t kSide = 16;
constexpr int64_t kCallsPerTime = 500;
constexpr int64_t kVerifiedSteps = 3;

std::array<at::Device, 2> both_devices() {
  return {at::Device(at::kCPU), sim::device(0)};
}

double milliseconds_of(const std::function<void()>& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

train::ResultRow empty_row(
    const std::string& what,
    const std::string& strategy,
    at::Device device,
    int64_t batch) {
  train::ResultRow row;
  row.workload = "operators";
  row.strategy = strategy;
  row.device = at::Device(device.type()).str();
  row.variant = fmt::format("{}/{}", what, row.device);
  row.batch = batch;
  row.verify_max_abs_diff = 0;
  return row;
}

[[noreturn]] void throw_different(const std::string& what) {
  throw VerificationError(fmt::format(
      "[bench] operators, {}: expected the CPU's bits on a simulated device, "
      "got others. Nothing is timed",
      what));
}

/// One operator on one device.
class OperatorRun {
 public:
  OperatorRun(const OperatorCase& operation, at::Device device)
      : operation_(operation) {
    torch::manual_seed(1);
    a_ = at::randn({kSide, kSide}).to(device);
    b_ = at::randn({kSide, kSide}).to(device);
  }

  at::Tensor call() {
    return operation_.call(a_, b_);
  }
  double time_one_ms() {
    return milliseconds_of([&] {
             for (int64_t i = 0; i < kCallsPerTime; ++i) {
               call();
             }
           }) /
        kCallsPerTime;
  }

 private:
  const OperatorCase& operation_;
  at::Tensor a_;
  at::Tensor b_;
};

void measure_operator(
    const OperatorCase& operation,
    const TurnPlan& turns,
    std::vector<train::ResultRow>& rows) {
  const c10::NoGradGuard no_grad;
  std::vector<OperatorRun> runs;
  const size_t first_row = rows.size();
  for (const auto& device : both_devices()) {
    runs.emplace_back(operation, device);
    rows.push_back(empty_row(operation.name, "bare", device, kSide));
  }
  if (!runs[0].call().equal(runs[1].call().cpu())) {
    throw_different(operation.name);
  }
  for (const auto& turn : plan_turns(runs.size(), turns)) {
    for (int64_t step = 0; step < turn.untimed_steps; ++step) {
      runs[turn.mode].time_one_ms();
    }
    for (int64_t step = 0; step < turn.timed_steps; ++step) {
      rows[first_row + turn.mode].step_ms.push_back(
          runs[turn.mode].time_one_ms());
    }
  }
}

void check_same_parameters(Learner& cpu, Learner& other) {
  const auto expected = unique_parameters(cpu.net());
  const auto actual = unique_parameters(other.net());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].tensor.equal(actual.at(i).tensor.cpu())) {
      throw_different(fmt::format("{}, '{}'", kCnnStep, expected[i].name));
    }
  }
}

/// The CNN's training step: bare on both devices, and in the wrappers of one
/// process on a simulated one.
class CnnRuns {
 public:
  explicit CnnRuns(int64_t batch) {
    recipe_.batch = batch;
    batches_ = make_whole_batches(recipe_, at::kFloat);
    for (const auto& device : both_devices()) {
      add(Learner(recipe_, device, at::kFloat), "bare", device);
    }
    for (const auto strategy : {Strategy::kSingle, Strategy::kDP}) {
      Placement placement;
      placement.strategy = strategy;
      placement.device = at::kPrivateUse1;
      const WorkerScope worker(placement);
      add(Learner(recipe_, worker, Mode{}, at::kFloat),
          strategy_name(strategy),
          worker.device());
    }
  }

  size_t size() const {
    return learners_.size();
  }
  void step(size_t run) {
    learners_[run].train_step(
        batches_[num_steps_[run]++ % batches_.size()],
        LossPlace::kOutside);
  }
  void verify() {
    for (size_t run = 0; run < size(); ++run) {
      for (int64_t i = 0; i < kVerifiedSteps; ++i) {
        step(run);
      }
      check_same_parameters(learners_[0], learners_[run]);
    }
  }
  void time_step(size_t run) {
    rows_[run].step_ms.push_back(milliseconds_of([&] { step(run); }));
  }
  std::vector<train::ResultRow>& rows() {
    return rows_;
  }

 private:
  void add(Learner learner, const std::string& strategy, at::Device device) {
    learners_.push_back(std::move(learner));
    num_steps_.push_back(0);
    rows_.push_back(empty_row(kCnnStep, strategy, device, recipe_.batch));
  }

  BenchRecipe recipe_;
  std::vector<Learner::Batch> batches_;
  std::vector<Learner> learners_;
  std::vector<size_t> num_steps_;
  std::vector<train::ResultRow> rows_;
};

void measure_cnn(
    int64_t batch,
    const TurnPlan& turns,
    std::vector<train::ResultRow>& rows) {
  CnnRuns runs(batch);
  runs.verify();
  for (const auto& turn : plan_turns(runs.size(), turns)) {
    for (int64_t i = 0; i < turn.untimed_steps; ++i) {
      runs.step(turn.mode);
    }
    for (int64_t i = 0; i < turn.timed_steps; ++i) {
      runs.time_step(turn.mode);
    }
  }
  std::move(runs.rows().begin(), runs.rows().end(), std::back_inserter(rows));
}

} // namespace

std::vector<train::ResultRow> measure_operators(
    int64_t batch,
    const TurnPlan& turns) {
  at::set_num_threads(1);
  start_sim_devices(1, {});
  std::vector<train::ResultRow> rows;
  for (const auto& operation : operator_cases()) {
    measure_operator(operation, turns, rows);
  }
  measure_cnn(batch, turns, rows);
  return rows;
}

} // namespace tandem::bench
