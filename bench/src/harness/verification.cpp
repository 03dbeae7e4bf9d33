#include "harness/verification.h"

#include <algorithm>

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <tandem/core/named_tensors.h>
#include <tandem/core/tensor_difference.h>

#include "harness/learner.h"
#include "harness/timed_activity.h"
#include "verify/verify_run.h"

namespace tandem::bench {

namespace {

constexpr int64_t kVerifySteps = 3;

bool trains(Activity activity) {
  return activity == Activity::kTrain || activity == Activity::kMeanLoss;
}

void change_parameters(torch::nn::Module& module) {
  for (const auto& [name, parameter] : unique_parameters(module)) {
    parameter.data().mul_(1.125);
  }
}

/// What the bare network makes of each step's batch.
class Reference {
 public:
  Reference(
      const WorkerScope& worker,
      Activity activity,
      const BenchRecipe& recipe)
      : activity_(activity),
        num_copies_(worker.devices().size() - 1),
        learner_(recipe, worker.device(), at::kDouble),
        batches_(make_whole_batches(recipe, at::kDouble)) {
    const bool sees_all = trains(activity) && !worker.is_independent();
    const auto rows = own_rows(worker, recipe.batch);
    for (auto& batch : batches_) {
      if (!sees_all) {
        batch.data = batch.data.narrow(0, rows.begin, rows.count);
        batch.target = batch.target.narrow(0, rows.begin, rows.count);
      }
    }
    if (!trains(activity)) {
      learner_.eval();
    }
  }

  ClassifierImpl& net() {
    return learner_.net();
  }

  std::vector<NamedTensor> run(int64_t step) {
    const auto& batch = batches_.at(static_cast<size_t>(step));
    if (activity_ == Activity::kEvaluate) {
      const c10::NoGradGuard no_grad;
      return {{"output", learner_.forward(batch.data)}};
    }
    if (trains(activity_)) {
      learner_.train_step(batch, LossPlace::kOutside);
      return unique_parameters(net());
    }
    std::vector<NamedTensor> copies;
    for (size_t copy = 0; copy < num_copies_; ++copy) {
      const auto parameters = unique_parameters(net());
      copies.insert(copies.end(), parameters.begin(), parameters.end());
    }
    return copies;
  }

 private:
  Activity activity_;
  size_t num_copies_;
  Learner learner_;
  std::vector<Learner::Batch> batches_;
};

void compare(
    int64_t step,
    const std::vector<NamedTensor>& expected,
    const std::vector<NamedTensor>& actual,
    Verification& verification) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference =
        max_abs_difference(expected[i].tensor, actual.at(i).tensor);
    verification.max_abs_diff = std::max(verification.max_abs_diff, difference);
    if (difference >= kVerifyTolerance && verification.first_mismatch.empty()) {
      verification.first_mismatch =
          fmt::format("step {}: '{}'", step + 1, expected[i].name);
    }
  }
}

} // namespace

Verification verify_mode(
    const WorkerScope& worker,
    const Mode& mode,
    BenchRecipe recipe) {
  recipe.batch = verify_batch(worker.workers());
  const auto candidate = make_timed_activity(worker, mode, recipe, at::kDouble);
  Reference reference(worker, mode.activity, recipe);
  Verification verification;
  for (int64_t step = 0; step < kVerifySteps; ++step) {
    if (!trains(mode.activity)) {
      change_parameters(candidate->net());
      change_parameters(reference.net());
    }
    candidate->run(step);
    compare(step, reference.run(step), candidate->outcome(), verification);
  }
  return verification;
}

} // namespace tandem::bench
