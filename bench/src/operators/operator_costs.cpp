#include "operators/operator_costs.h"

#include <array>
#include <chrono>

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
    at::Device device,
    int64_t batch) {
  const auto name = at::Device(device.type()).str();
  train::ResultRow row;
  row.workload = "operators";
  row.strategy = "bare";
  row.device = name;
  row.variant = fmt::format("{}/{}", what, name);
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
    rows.push_back(empty_row(operation.name, device, kSide));
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

void check_same_parameters(Learner& cpu, Learner& sim) {
  const auto expected = unique_parameters(cpu.net());
  const auto actual = unique_parameters(sim.net());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].tensor.equal(actual.at(i).tensor.cpu())) {
      throw_different(fmt::format("{}, '{}'", kCnnStep, expected[i].name));
    }
  }
}

void measure_cnn(
    int64_t batch,
    const TurnPlan& turns,
    std::vector<train::ResultRow>& rows) {
  BenchRecipe recipe;
  recipe.batch = batch;
  const auto batches = make_whole_batches(recipe, at::kFloat);
  std::vector<Learner> learners;
  const size_t first_row = rows.size();
  for (const auto& device : both_devices()) {
    learners.emplace_back(recipe, device, at::kFloat);
    rows.push_back(empty_row(kCnnStep, device, batch));
  }
  std::array<size_t, 2> num_steps{};
  const auto step = [&](size_t which) {
    learners[which].train_step(
        batches[num_steps.at(which)++ % batches.size()],
        LossPlace::kOutside);
  };
  for (int64_t i = 0; i < kVerifiedSteps; ++i) {
    step(0);
    step(1);
  }
  check_same_parameters(learners[0], learners[1]);
  for (const auto& turn : plan_turns(learners.size(), turns)) {
    for (int64_t i = 0; i < turn.untimed_steps; ++i) {
      step(turn.mode);
    }
    for (int64_t i = 0; i < turn.timed_steps; ++i) {
      rows[first_row + turn.mode].step_ms.push_back(
          milliseconds_of([&] { step(turn.mode); }));
    }
  }
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
