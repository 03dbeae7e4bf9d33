#include <tandem/core/norm_statistics.h>

#include <algorithm>
#include <limits>
#include <type_traits>
#include <unordered_set>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>

namespace tandem {

// Note [Merging statistics]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// All parts start from the same running mean. A forward moves that of part p by
// x_p = a (mean_p - start), where mean_p is the mean of its rows and a the
// layer's factor: the momentum, 1 / number of batches for a cumulative average,
// 1 - (1 - momentum)^k for k calls. The mean of the x_p, weighted by rows, is
// a (mean - start): exactly what the whole batch would have added.
//
// The whole's variance is the mean of the parts' variances, plus the variance of
// their means. So the mean of the running variances lacks a times the latter,
// which is, since the start cancels, (mean of x_p^2 - (mean of x_p)^2) / a. In
// double this difference keeps all digits that running statistics have.
//
// InstanceNorm tracks the mean of its instances' variances, to which the
// variance of their means does not belong: its factor counts as 0.
//
// Each part sends its rows as weight (0 for a layer that did not run), and
// weighted its moves of mean and variance, x_p^2 and a. Their sums are enough.

namespace {

/// No momentum (a cumulative average), or no count of batches.
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Appends `module` to `layers` if it is a `Norm` that tracks statistics.
template <typename Norm>
void add_if(
    const std::shared_ptr<torch::nn::Module>& module,
    std::vector<detail::NormLayer>& layers) {
  auto* const norm = module->as<Norm>();
  if (norm == nullptr || !norm->running_mean.defined()) {
    return;
  }
  detail::NormLayer layer{
      module,
      &norm->running_mean,
      &norm->running_var,
      nullptr,
      nullptr};
  if constexpr (std::is_same_v<
                    decltype(norm->options),
                    torch::nn::BatchNormOptions>) {
    layer.num_batches_tracked = &norm->num_batches_tracked;
    layer.momentum = &norm->options.momentum();
  }
  layers.push_back(std::move(layer));
}

std::vector<detail::NormLayer> find_layers(const torch::nn::Module& module) {
  std::vector<detail::NormLayer> layers;
  std::unordered_set<const torch::nn::Module*> seen;
  for (const auto& child : module.modules()) {
    if (seen.insert(child.get()).second) {
      add_if<torch::nn::BatchNorm1dImpl>(child, layers);
      add_if<torch::nn::BatchNorm2dImpl>(child, layers);
      add_if<torch::nn::BatchNorm3dImpl>(child, layers);
      add_if<torch::nn::InstanceNorm1dImpl>(child, layers);
      add_if<torch::nn::InstanceNorm2dImpl>(child, layers);
      add_if<torch::nn::InstanceNorm3dImpl>(child, layers);
    }
  }
  return layers;
}

at::Tensor inverse_or_zero(const at::Tensor& values) {
  return at::where(values > 0, values.reciprocal(), 0.0);
}

} // namespace

NormStatistics::NormStatistics(const torch::nn::Module& module)
    : layers_(find_layers(module)) {
  std::vector<int64_t> layer_of_channel;
  for (size_t index = 0; index < layers_.size(); ++index) {
    num_channels_.push_back(layers_[index].running_mean->numel());
    layer_of_channel.insert(
        layer_of_channel.end(),
        num_channels_.back(),
        static_cast<int64_t>(index));
  }
  if (!layers_.empty()) {
    layer_of_channel_ = at::tensor(layer_of_channel).to(device());
  }
}

at::Device NormStatistics::device() const {
  return layers_.front().running_mean->device();
}

bool NormStatistics::is_training() const {
  return std::any_of(layers_.begin(), layers_.end(), [](const auto& layer) {
    return layer.module->is_training();
  });
}

void NormStatistics::begin() {
  const at::NoGradGuard no_grad;
  start_means_ = join(&detail::NormLayer::running_mean);
  start_variances_ = join(&detail::NormLayer::running_var);
  start_counts_ = batch_counts();
}

at::Tensor NormStatistics::contribution(int64_t rows) const {
  const at::NoGradGuard no_grad;
  const auto means = join(&detail::NormLayer::running_mean) - start_means_;
  const auto variances =
      join(&detail::NormLayer::running_var) - start_variances_;
  // A layer that does not count its batches is taken for one that ran.
  const auto num_calls = batch_counts() - start_counts_;
  const auto weights = num_calls.ne(0).to(at::kDouble) * rows;
  const auto weight_of_channel = per_channel(weights);
  return at::cat(
      {weight_of_channel * means,
       weight_of_channel * variances,
       weight_of_channel * means.square(),
       weights,
       weights * factors(num_calls)});
}

void NormStatistics::adopt(const at::Tensor& sum) const {
  const at::NoGradGuard no_grad;
  const auto num_layers = static_cast<int64_t>(layers_.size());
  const int64_t num_channels = layer_of_channel_.numel();
  const auto parts = sum.split_with_sizes(
      {num_channels, num_channels, num_channels, num_layers, num_layers});
  const auto inverse_weights = inverse_or_zero(parts[3]);
  const auto inverse_factors = inverse_or_zero(parts[4] * inverse_weights);
  const auto inverse = per_channel(inverse_weights);
  const auto means = parts[0] * inverse;
  const auto between = (parts[2] * inverse - means.square()).clamp_min(0) *
      per_channel(inverse_factors);
  write(&detail::NormLayer::running_mean, start_means_ + means);
  write(
      &detail::NormLayer::running_var,
      start_variances_ + parts[1] * inverse + between);
}

/// A copy of one statistic of all layers, in double.
at::Tensor NormStatistics::join(Statistic statistic) const {
  std::vector<at::Tensor> parts;
  parts.reserve(layers_.size());
  for (const auto& layer : layers_) {
    parts.push_back((layer.*statistic)->to(device(), at::kDouble));
  }
  return at::cat(parts);
}

void NormStatistics::write(Statistic statistic, const at::Tensor& values)
    const {
  const auto parts = values.split_with_sizes(num_channels_);
  const at::AutoDispatchBelowADInplaceOrView no_version;
  for (size_t index = 0; index < layers_.size(); ++index) {
    (layers_[index].*statistic)->copy_(parts[index]);
  }
}

/// Batches of each layer so far; NaN where they are not counted.
at::Tensor NormStatistics::batch_counts() const {
  const auto none =
      at::full({}, kNone, at::TensorOptions(device()).dtype(at::kDouble));
  std::vector<at::Tensor> counts;
  counts.reserve(layers_.size());
  for (const auto& layer : layers_) {
    counts.push_back(
        layer.num_batches_tracked == nullptr
            ? none
            : layer.num_batches_tracked->to(device(), at::kDouble));
  }
  return at::stack(counts);
}

/// The weight of `num_calls` batches in the running statistics; 0 for
/// InstanceNorm.
at::Tensor NormStatistics::factors(const at::Tensor& num_calls) const {
  std::vector<double> momenta;
  momenta.reserve(layers_.size());
  for (const auto& layer : layers_) {
    momenta.push_back(
        layer.momentum == nullptr ? 0.0 : layer.momentum->value_or(kNone));
  }
  const auto momentum = at::tensor(momenta, at::kDouble).to(device());
  const auto exponential = 1 - at::pow(1 - momentum, num_calls);
  const auto cumulative = num_calls / batch_counts();
  return at::where(momentum.isnan(), cumulative, exponential).nan_to_num(0.0);
}

at::Tensor NormStatistics::per_channel(const at::Tensor& per_layer) const {
  return per_layer.index_select(0, layer_of_channel_);
}

} // namespace tandem
