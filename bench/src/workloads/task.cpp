#include "workloads/task.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include "workloads/token_model.h"

namespace tandem::bench {

namespace {

constexpr int64_t kImageSide = 28;

// Scores of all places as [M, classes] and their classes as [M]: [N, classes,
// ...], which the loss takes too, would be a copy.
at::Tensor cross_entropy(
    const at::Tensor& scores,
    const at::Tensor& target,
    at::Reduction::Reduction reduction) {
  return at::cross_entropy_loss(
      scores.flatten(0, -2),
      target.to(scores.device()).flatten(),
      /*weight=*/{},
      reduction);
}

} // namespace

torch::data::Example<> make_batch(
    Architecture architecture,
    int64_t rows,
    uint64_t seed,
    at::ScalarType dtype) {
  auto generator = at::detail::createCPUGenerator(seed);
  if (architecture == Architecture::kTransformer) {
    const auto tokens = at::randint(
        kVocabularyTokens,
        {rows, kSequenceTokens + 1},
        generator,
        at::kLong);
    return {
        tokens.narrow(1, 0, kSequenceTokens).contiguous(),
        tokens.narrow(1, 1, kSequenceTokens).contiguous()};
  }
  return {
      at::randn({rows, 1, kImageSide, kImageSide}, generator, dtype),
      at::randint(kNumClasses, {rows}, generator, at::kLong)};
}

at::Tensor mean_cross_entropy(
    const at::Tensor& scores,
    const at::Tensor& target) {
  return cross_entropy(scores, target, at::Reduction::Mean);
}

at::Tensor row_cross_entropy(
    const at::Tensor& scores,
    const at::Tensor& target) {
  const int64_t rows = target.size(0);
  return cross_entropy(scores, target, at::Reduction::None)
      .view({rows, -1})
      .mean(1);
}

} // namespace tandem::bench
