#include "harness/learner.h"

#include <torch/utils.h>

#include <tandem/ddp/distributed_data_parallel.h>

#include "harness/comm_hook_choice.h"
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
    const WorkerScope& worker,
    TimedStrategy strategy) {
  auto options = worker.wrap_options();
  options.ddp().gradient_as_bucket_view(strategy != TimedStrategy::kDDPCopies);
  if (recipe.refresh_policy) {
    options.dp().refresh_policy(*recipe.refresh_policy);
  }
  if (recipe.bucket_cap_bytes) {
    options.dp().bucket_cap_bytes(*recipe.bucket_cap_bytes);
    options.ddp().bucket_cap_bytes(*recipe.bucket_cap_bytes);
  }
  if (recipe.first_bucket_bytes) {
    options.ddp().first_bucket_bytes(*recipe.first_bucket_bytes);
  }
  return options;
}

/// The wrapper, if it is ddp's; else null.
std::shared_ptr<DistributedDataParallelImpl<ClassifierImpl>> ddp_of(
    const std::shared_ptr<Parallel<ClassifierImpl>>& wrapper) {
  return std::dynamic_pointer_cast<DistributedDataParallelImpl<ClassifierImpl>>(
      wrapper);
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
    const Mode& mode,
    at::ScalarType dtype)
    : Learner(recipe, worker.device(), dtype) {
  peer_ = make_gradient_peer(mode.strategy, *net_, recipe);
  if (!peer_) {
    wrapper_ = wrap(net_, wrap_options_of(recipe, worker, mode.strategy));
  }
  if (!mode.hook.empty()) {
    hook_ = make_comm_hook(mode.hook);
    ddp_of(wrapper_)->register_comm_hook(hook_);
  }
}

void Learner::train_step(const Batch& batch, LossPlace loss_place) {
  if (peer_) {
    // PyTorch's reducer may own gradients that the optimizer cannot detach.
    for (const auto& parameter : net_->parameters()) {
      parameter.mutable_grad().reset();
    }
  } else {
    optimizer_->zero_grad();
  }
  mean_loss(batch, loss_place).backward();
  if (peer_) {
    peer_->after_backward();
  }
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

std::optional<CommunicationTimes> Learner::communication() const {
  const auto ddp = ddp_of(wrapper_);
  if (!ddp) {
    return std::nullopt;
  }
  constexpr double ms_per_s = 1000;
  const auto data = ddp->logging_data();
  return CommunicationTimes{
      data.avg_backward_comm_time * ms_per_s,
      data.avg_backward_compute_comm_overlap_time * ms_per_s};
}

std::optional<comm::HookTraffic> Learner::hook_traffic() const {
  return hook_ ? std::optional(hook_->traffic()) : std::nullopt;
}

std::shared_ptr<DataParallelImpl<ClassifierImpl>> Learner::data_parallel()
    const {
  return std::dynamic_pointer_cast<DataParallelImpl<ClassifierImpl>>(wrapper_);
}

at::Tensor Learner::mean_loss(const Batch& batch, LossPlace loss_place) {
  if (loss_place == LossPlace::kInReplica) {
    return wrapper_->mean_loss(row_cross_entropy, batch.target, batch.data);
  }
  if (peer_) {
    peer_->before_forward();
  }
  const auto loss = mean_cross_entropy(forward(batch.data), batch.target);
  if (peer_) {
    peer_->after_forward();
  }
  return loss;
}

} // namespace tandem::bench
