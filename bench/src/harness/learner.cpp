#include "harness/learner.h"

#include <torch/utils.h>

#include "workloads/task.h"

namespace tandem::bench {

namespace {

constexpr double kLearningRate = 0.01;
constexpr double kMomentum = 0.9;

std::shared_ptr<ClassifierImpl> make_seeded_net(
    const BenchRecipe& recipe,
    at::Device device,
    at::ScalarType dtype) {
  torch::manual_seed(recipe.seed);
  Classifier net(recipe.workload);
  net->to(device, dtype);
  return net.ptr();
}

WrapOptions wrap_options_of(
    const BenchRecipe& recipe,
    const WorkerScope& worker) {
  auto options = worker.wrap_options();
  if (recipe.refresh_policy) {
    options.dp().refresh_policy(*recipe.refresh_policy);
  }
  if (recipe.bucket_cap_bytes) {
    options.dp().bucket_cap_bytes(*recipe.bucket_cap_bytes);
    options.ddp().bucket_cap_bytes(*recipe.bucket_cap_bytes);
  }
  return options;
}

} // namespace

Learner::Learner(
    const BenchRecipe& recipe,
    at::Device device,
    at::ScalarType dtype)
    : net_(make_seeded_net(recipe, device, dtype)), device_(device) {
  optimizer_.emplace(
      net_->parameters(),
      torch::optim::SGDOptions(kLearningRate).momentum(kMomentum));
}

Learner::Learner(
    const BenchRecipe& recipe,
    const WorkerScope& worker,
    at::ScalarType dtype)
    : Learner(recipe, worker.device(), dtype) {
  wrapper_ = wrap(net_, wrap_options_of(recipe, worker));
}

void Learner::train_step(const Batch& batch, LossPlace loss_place) {
  optimizer_->zero_grad();
  mean_loss(batch, loss_place).backward();
  optimizer_->step();
}

at::Tensor Learner::forward(const at::Tensor& data) {
  return wrapper_ ? wrapper_->forward(data) : net_->forward(data.to(device_));
}

void Learner::eval() {
  if (wrapper_) {
    wrapper_->eval();
  } else {
    net_->eval();
  }
}

Counters Learner::counters() const {
  return wrapper_ ? wrapper_->counters() : Counters();
}

std::shared_ptr<DataParallelImpl<ClassifierImpl>> Learner::data_parallel()
    const {
  return std::dynamic_pointer_cast<DataParallelImpl<ClassifierImpl>>(wrapper_);
}

at::Tensor Learner::mean_loss(const Batch& batch, LossPlace loss_place) {
  if (loss_place == LossPlace::kInReplica) {
    return wrapper_->mean_loss(row_cross_entropy, batch.target, batch.data);
  }
  return mean_cross_entropy(forward(batch.data), batch.target);
}

} // namespace tandem::bench
