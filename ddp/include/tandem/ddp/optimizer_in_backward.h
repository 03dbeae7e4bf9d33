#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <torch/optim/optimizer.h>

#include <tandem/core/named_tensors.h>
#include <tandem/ddp/distributed_data_parallel.h>

namespace tandem {

/// Takes each parameter's optimizer step as soon as its gradient has been
/// reduced, while others are still on their way, and lets go of the gradient:
/// `step` and `zero_grad` have nothing left to do. Every parameter has an
/// optimizer of its own, so that one whose gradients depend on each other, such
/// as LBFGS or one after clipping by the total norm, is not for this.
///
/// Backwards under `no_sync` take no step. The wrapper outlives it.
/// **Source**: `torch.distributed.optim._apply_optimizer_in_backward`
///
/// Example:
/// ```cpp
/// tandem::OptimizerInBackward in_backward(model, [](auto parameters) {
///   return std::make_unique<torch::optim::Adam>(parameters, 1e-3);
/// });
/// loss.backward(); // steps
/// ```
class OptimizerInBackward {
 public:
  using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(
      std::vector<at::Tensor>)>;

  /// `make` is called once for each parameter that requires grad.
  /// **Throws** `ConfigError` if the wrapper has one already.
  template <typename M>
  OptimizerInBackward(DistributedDataParallel<M>& model, const Make& make)
      : OptimizerInBackward(
            model->parameters(),
            make,
            [impl = model.ptr()](auto function) {
              impl->set_on_gradient(std::move(function));
            }) {}

  ~OptimizerInBackward();
  OptimizerInBackward(const OptimizerInBackward&) = delete;
  OptimizerInBackward& operator=(const OptimizerInBackward&) = delete;

  /// One per parameter, for schedules and checkpoints.
  std::vector<torch::optim::Optimizer*> optimizers() const;

 private:
  using OnGradient = std::function<void(const NamedTensor&)>;

  OptimizerInBackward(
      const std::vector<at::Tensor>& parameters,
      const Make& make,
      std::function<void(OnGradient)> install);

  std::function<void(OnGradient)> install_;
  std::vector<std::unique_ptr<torch::optim::Optimizer>> optimizers_;
};

} // namespace tandem
