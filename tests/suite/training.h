#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "modules.h"
#include "wrapping.h"

namespace tandem::suite {

using namespace tandem::test;

/// Rows of a global batch: 1, 2 and 3 processes get equal parts.
inline constexpr int64_t kRows = 12;

/// A new module with the same values every time.
template <typename M>
std::shared_ptr<M> make_seeded(at::ScalarType dtype = at::kDouble) {
  auto net = make_net<M>(42);
  net->to(dtype);
  return net;
}

using OptimizerMaker = std::function<std::unique_ptr<torch::optim::Optimizer>(
    std::vector<at::Tensor>)>;

OptimizerMaker sgd_with_momentum();
OptimizerMaker adam();
OptimizerMaker adamw();

/// Parameters, gradients (undefined where there is none) and buffers.
std::vector<at::Tensor> state_of(const torch::nn::Module& module);

/// Mean squared error over this process's rows.
template <typename M>
at::Tensor loss_of(
    const std::shared_ptr<Parallel<M>>& model,
    const Worker& worker,
    const Batch& batch) {
  return torch::mse_loss(
      model->forward(worker.share(batch.input)),
      worker.share(batch.target));
}

/// Trains `M` for `num_steps` on global batches of `rows`; its state after.
template <typename M>
Body train(
    int64_t rows,
    int num_steps,
    const OptimizerMaker& make_optimizer,
    at::ScalarType dtype = at::kDouble) {
  return [=](const Worker& worker) {
    const auto net = make_seeded<M>(dtype);
    const auto model = worker.wrap(net);
    const auto optimizer = make_optimizer(model->parameters());
    for (int step = 0; step < num_steps; ++step) {
      auto batch = M::batch(rows, 100 + 2 * step);
      batch.input = batch.input.to(dtype);
      batch.target = batch.target.to(dtype);
      optimizer->zero_grad();
      loss_of(model, worker, batch).backward();
      optimizer->step();
    }
    return snapshot(state_of(*net));
  };
}

} // namespace tandem::suite
