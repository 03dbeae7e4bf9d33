#include <tandem/ddp/optimizer_in_backward.h>

#include <unordered_map>
#include <utility>

namespace tandem {

OptimizerInBackward::OptimizerInBackward(
    const std::vector<at::Tensor>& parameters,
    const Make& make,
    std::function<void(OnGradient)> install)
    : install_(std::move(install)) {
  std::unordered_map<const at::TensorImpl*, torch::optim::Optimizer*> by_tensor;
  for (const auto& parameter : parameters) {
    if (parameter.requires_grad() &&
        by_tensor.count(parameter.unsafeGetTensorImpl()) == 0) {
      optimizers_.push_back(make({parameter}));
      by_tensor[parameter.unsafeGetTensorImpl()] = optimizers_.back().get();
    }
  }
  install_([by_tensor = std::move(by_tensor)](const NamedTensor& parameter) {
    const auto found = by_tensor.find(parameter.tensor.unsafeGetTensorImpl());
    if (found != by_tensor.end()) {
      found->second->step();
      parameter.tensor.mutable_grad().reset();
    }
  });
}

OptimizerInBackward::~OptimizerInBackward() {
  install_(nullptr);
}

std::vector<torch::optim::Optimizer*> OptimizerInBackward::optimizers() const {
  std::vector<torch::optim::Optimizer*> result;
  result.reserve(optimizers_.size());
  for (const auto& optimizer : optimizers_) {
    result.push_back(optimizer.get());
  }
  return result;
}

} // namespace tandem
