#include <tandem/optim/post_local_sgd_optimizer.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <torch/serialize/input-archive.h>
#include <torch/serialize/output-archive.h>

#include <tandem/comm/rank_tag.h>
#include <tandem/core/errors.h>

#include "wrapped_options.h"

namespace tandem {

namespace {

using torch::optim::OptimizerParamGroup;

/// As in PyTorch's state dict.
constexpr auto kStepKey = "step";

const torch::optim::Optimizer& expect_optimizer(
    const std::unique_ptr<torch::optim::Optimizer>& inner) {
  if (!inner) {
    throw ConfigError(
        "[optim] PostLocalSGDOptimizer: expected an optimizer, got null");
  }
  return *inner;
}

} // namespace

PostLocalSGDOptimizer::PostLocalSGDOptimizer(
    std::unique_ptr<torch::optim::Optimizer> inner,
    std::shared_ptr<ModelAverager> averager)
    : Optimizer(
          expect_optimizer(inner).param_groups(),
          expect_optimizer(inner).defaults().clone()),
      inner_(std::move(inner)),
      averager_(std::move(averager)) {
  if (!averager_) {
    throw ConfigError(
        "[optim] PostLocalSGDOptimizer: expected an averager, got null");
  }
}

at::Tensor PostLocalSGDOptimizer::step(LossClosure closure) {
  hand_groups_in();
  auto loss = inner_->step(std::move(closure));
  averager_->average_parameters(all_parameters());
  return loss;
}

void PostLocalSGDOptimizer::save(
    torch::serialize::OutputArchive& archive) const {
  detail::copy_options(*this, *inner_);
  inner_->save(archive);
  archive.write(kStepKey, c10::IValue(averager_->step()));
}

void PostLocalSGDOptimizer::load(torch::serialize::InputArchive& archive) {
  hand_groups_in();
  inner_->load(archive);
  detail::copy_options(*inner_, *this);
  c10::IValue step(int64_t(0));
  const auto& group = *averager_->process_group();
  if (!archive.try_read(kStepKey, step) && group.rank() == 0) {
    TORCH_WARN(
        comm::rank_tag("optim", group.rank(), group.size()),
        " loaded state of PostLocalSGDOptimizer: expected the averager's step, "
        "got none. The averager begins at step 0");
  }
  averager_->set_step(step.toInt());
}

std::vector<at::Tensor> PostLocalSGDOptimizer::all_parameters() const {
  std::vector<at::Tensor> parameters;
  for (const auto& param_group : param_groups()) {
    const auto& some = param_group.params();
    parameters.insert(parameters.end(), some.begin(), some.end());
  }
  return parameters;
}

/// Gives the optimizer inside the groups, parameters and options that this one
/// has by now.
void PostLocalSGDOptimizer::hand_groups_in() {
  auto& groups = inner_->param_groups();
  for (size_t i = groups.size(); i < param_groups().size(); ++i) {
    inner_->add_param_group(param_groups()[i]);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].params() = param_groups()[i].params();
  }
  detail::copy_options(*this, *inner_);
}

} // namespace tandem
