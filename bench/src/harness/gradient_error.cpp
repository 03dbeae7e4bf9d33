#include "harness/gradient_error.h"

#include <cmath>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <tandem/core/named_tensors.h>

#include "harness/timed_activity.h"

namespace tandem::bench {

namespace {

/// Steps before, in which hooks still take plain means.
constexpr int kStepsBefore = 2;

std::vector<at::Tensor> gradients_of(ClassifierImpl& net) {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : unique_parameters(net)) {
    gradients.push_back(parameter.grad().to(at::kDouble, false, /*copy=*/true));
  }
  return gradients;
}

void add_to(
    std::vector<at::Tensor>& sums,
    const std::vector<at::Tensor>& values) {
  if (sums.empty()) {
    sums = values;
    return;
  }
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i] = sums[i] + values[i];
  }
}

double relative_error(
    const std::vector<at::Tensor>& actual,
    const std::vector<at::Tensor>& expected) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += (actual[i] - expected[i]).square().sum().item<double>();
    norm += expected[i].square().sum().item<double>();
  }
  return std::sqrt(difference / norm);
}

void copy_values(const torch::nn::Module& from, torch::nn::Module& to) {
  const c10::NoGradGuard no_grad;
  const auto sources = unique_parameters(from);
  const auto targets = unique_parameters(to);
  for (size_t i = 0; i < targets.size(); ++i) {
    targets[i].tensor.copy_(sources[i].tensor);
  }
}

} // namespace

GradientError measure_gradient_error(
    const WorkerScope& worker,
    const Mode& mode,
    const BenchRecipe& recipe) {
  auto plain_mode = mode;
  plain_mode.hook.clear();
  const auto plain =
      make_timed_activity(worker, plain_mode, recipe, at::kFloat);
  const auto hooked = make_timed_activity(worker, mode, recipe, at::kFloat);
  GradientError error;
  std::vector<at::Tensor> expected_sum;
  std::vector<at::Tensor> actual_sum;
  for (int64_t step = 0; step < kStepsBefore + kErrorSteps; ++step) {
    plain->run(step);
    hooked->run(step);
    if (step >= kStepsBefore) {
      const auto expected = gradients_of(plain->net());
      const auto actual = gradients_of(hooked->net());
      error.of_step += relative_error(actual, expected) / kErrorSteps;
      add_to(expected_sum, expected);
      add_to(actual_sum, actual);
    }
    copy_values(plain->net(), hooked->net());
  }
  error.of_sum = relative_error(actual_sum, expected_sum);
  return error;
}

} // namespace tandem::bench
