#include <tandem/core/sync_batch_norm.h>

#include <utility>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/library.h>
#include <torch/nn/functional/batchnorm.h>

#include <tandem/core/errors.h>
#include <tandem/core/statistics_group.h>

#include "channel_math.h"

namespace tandem {

at::Tensor SyncBatchNormImpl::forward(const at::Tensor& input) {
  _check_input_dim(input);
  const bool tracks = options.track_running_stats();
  const bool uses_batch = is_training() || !tracks;
  auto* const group = uses_batch ? StatisticsScope::current() : nullptr;
  if (group == nullptr) {
    namespace functional = torch::nn::functional;
    return functional::batch_norm(
        input,
        running_mean,
        running_var,
        functional::BatchNormFuncOptions()
            .weight(weight)
            .bias(bias)
            .training(uses_batch)
            .momentum(is_training() && tracks ? next_average_factor() : 0.0)
            .eps(options.eps()));
  }
  const auto batch = group->combine(*this, moments_of(input));
  if (is_training() && tracks && !group->is_recomputation()) {
    update_running_statistics(batch);
  }
  return normalize(input, batch);
}

void SyncBatchNormImpl::share_tensors(
    const at::Tensor& in_weight,
    const at::Tensor& in_bias,
    const at::Tensor& in_running_mean,
    const at::Tensor& in_running_var,
    const at::Tensor& in_num_batches_tracked) {
  weight = parameters_["weight"] = in_weight;
  bias = parameters_["bias"] = in_bias;
  for (const auto& [own, given] :
       {std::pair(running_mean, in_running_mean),
        std::pair(running_var, in_running_var),
        std::pair(num_batches_tracked, in_num_batches_tracked)}) {
    if (own.defined()) {
      own.set_data(given);
    }
  }
}

double SyncBatchNormImpl::next_average_factor() {
  num_batches_tracked += 1;
  const auto momentum = options.momentum();
  return momentum ? *momentum : 1.0 / num_batches_tracked.item<double>();
}

void SyncBatchNormImpl::update_running_statistics(const BatchMoments& batch) {
  const double factor = next_average_factor();
  const auto count = batch.count();
  const auto variance = batch.m2() / (count - 1).clamp_min(1);
  // No rows change nothing.
  const auto weight_of_batch = count.gt(0).to(at::kDouble).mul(factor);
  // Like LibTorch's BatchNorm this moves no version, so that graphs which hold
  // the statistics stay valid, and records no history.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const auto& [running, value] :
       {std::pair(running_mean, batch.mean()),
        std::pair(running_var, variance)}) {
    const auto dtype = running.scalar_type();
    running.lerp_(value.to(dtype), weight_of_batch.to(dtype));
  }
}

at::Tensor SyncBatchNormImpl::normalize(
    const at::Tensor& input,
    const BatchMoments& batch) const {
  const auto variance = batch.m2() / batch.count().clamp_min(1);
  auto scale = (variance + options.eps()).rsqrt();
  if (weight.defined()) {
    scale = scale * weight;
  }
  return detail::scale_about_center(
      input,
      batch.mean(),
      scale,
      bias.defined() ? bias : at::zeros_like(scale));
}

void SyncBatchNormImpl::_check_input_dim(const at::Tensor& input) {
  if (input.dim() < 2 || input.size(1) != options.num_features()) {
    throw ShapeError(fmt::format(
        "SyncBatchNorm: input: expected [rows, {}, ...], got [{}]. Construct "
        "the layer with the input's number of channels",
        options.num_features(),
        fmt::join(input.sizes(), ", ")));
  }
}

void SyncBatchNormImpl::pretty_print(std::ostream& stream) const {
  stream << fmt::format(
      "tandem::SyncBatchNorm({}, eps={}, momentum={}, affine={}, "
      "track_running_stats={})",
      options.num_features(),
      options.eps(),
      options.momentum() ? fmt::to_string(*options.momentum()) : "None",
      options.affine(),
      options.track_running_stats());
}

} // namespace tandem
