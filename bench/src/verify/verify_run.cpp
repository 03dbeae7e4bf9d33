#include "verify/verify_run.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <torch/utils.h>

#include <tandem/core/named_tensors.h>

namespace tandem::bench {

namespace {

constexpr int64_t kRowsPerWorker = 6;

std::shared_ptr<ClassifierImpl> make_net(
    Architecture model,
    at::Device device) {
  torch::manual_seed(1);
  Classifier net(model);
  net->to(device, at::kDouble);
  return net.ptr();
}

torch::data::Example<> make_batch(
    int64_t rows,
    int64_t step,
    at::Device device) {
  auto generator = at::detail::createCPUGenerator(100 + step);
  return {
      at::randn({rows, 1, 28, 28}, generator, at::kDouble).to(device),
      at::randint(10, {rows}, generator, at::kLong).to(device)};
}

// Changes what the wrapper has to carry to replicas and from rank 0.
void disturb_buffers(torch::nn::Module& module, int64_t step, int64_t rank) {
  const c10::NoGradGuard no_grad;
  for (const auto& [name, buffer] : unique_buffers(module)) {
    buffer.add_(0.25 * static_cast<double>(step + 1 + 10 * rank));
  }
}

} // namespace

int64_t verify_batch(int64_t workers) {
  return kRowsPerWorker * workers;
}

EquivalenceReport verify(
    const WorkerScope& worker,
    const VerifyRecipe& recipe) {
  auto options = worker.wrap_options();
  options.dp().refresh_policy(recipe.refresh_policy);
  options.ddp().broadcast_buffers(recipe.broadcast_buffers);
  const auto reference = make_net(recipe.model, worker.device());
  const auto candidate = wrap(make_net(recipe.model, worker.device()), options);
  const int64_t rows = verify_batch(worker.workers());
  return check_equivalence(
      *reference,
      *candidate,
      EquivalenceOptions(
          [&](int64_t step) { return make_batch(rows, step, worker.device()); },
          [](const at::Tensor& scores, const at::Tensor& target) {
            return at::cross_entropy_loss(scores, target);
          })
          .disturb(disturb_buffers)
          .tolerance(kVerifyTolerance));
}

} // namespace tandem::bench
