#include <tandem/train/evaluation.h>

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "batch_to_device.h"

namespace tandem::train {

namespace {

/// Puts a model in eval mode until it is destroyed.
class EvalMode {
 public:
  explicit EvalMode(ParallelModule& model)
      : model_(model), was_training_(model.is_training()) {
    model_.eval();
  }
  ~EvalMode() {
    model_.train(was_training_);
  }
  EvalMode(const EvalMode&) = delete;
  EvalMode& operator=(const EvalMode&) = delete;

 private:
  ParallelModule& model_;
  bool was_training_;
};

// Sum of the losses, correct answers, samples: [3].
at::Tensor sums_of(const at::Tensor& scores, const at::Tensor& target) {
  const auto loss =
      at::cross_entropy_loss(scores, target, {}, at::Reduction::Sum);
  const auto correct = scores.argmax(1).eq(target).sum();
  const auto count = at::zeros_like(correct) + target.size(0);
  return at::stack(
      {loss.to(at::kDouble), correct.to(at::kDouble), count.to(at::kDouble)});
}

} // namespace

Evaluation evaluate_classifier(
    ParallelModule& model,
    BatchSource& source,
    const ScoreFunction& scores) {
  const EvalMode eval_mode(model);
  const c10::NoGradGuard no_grad;
  auto sums = at::zeros({3}, at::kDouble).to(model.device());
  source.start_epoch(0);
  while (const auto next = source.next()) {
    const auto batch = to_device(*next, model.device());
    sums += sums_of(scores(batch), batch.target);
  }
  model.all_reduce_sum_(sums);
  sums = sums.cpu();
  const auto count = sums[2].item<double>();
  return {
      sums[0].item<double>() / count,
      sums[1].item<double>() / count,
      static_cast<int64_t>(count)};
}

} // namespace tandem::train
