#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

namespace tandem {

namespace detail {

/// A layer with running statistics, without its type.
struct NormLayer {
  std::shared_ptr<torch::nn::Module> module;
  at::Tensor* running_mean;
  at::Tensor* running_var;
  /// Null for InstanceNorm, which does not count batches.
  at::Tensor* num_batches_tracked;
  /// Null for InstanceNorm.
  const std::optional<double>* momentum;
};

} // namespace detail

/// The running statistics of a module's BatchNorm and InstanceNorm layers
/// (LibTorch's, found by type), to be merged with those of the same module
/// elsewhere that ran on other rows. See Note [Merging statistics].
///
/// `begin`; forward; then `adopt` the sum of all parts' `contribution`.
/// **Threads**: one at a time, and none that runs the module.
class NormStatistics {
 public:
  /// Shares the layers. Those that track nothing are left out.
  explicit NormStatistics(const torch::nn::Module& module);

  bool empty() const {
    return layers_.empty();
  }
  /// Whether a forward may change anything.
  bool is_training() const;
  /// Of the first layer; there must be one.
  at::Device device() const;

  /// Remembers what the forward starts from; the same in all parts.
  void begin();

  /// What `rows` rows of this part did, to be summed over the parts. Double, on
  /// `device()`. [3 * channels + 2 * layers]
  at::Tensor contribution(int64_t rows) const;

  /// Sets the running statistics to those of all parts. Moves no version, so
  /// that graphs made before stay valid.
  void adopt(const at::Tensor& sum) const;

 private:
  using Statistic = at::Tensor* detail::NormLayer::*;

  at::Tensor join(Statistic statistic) const; // [channels]
  void write(Statistic statistic, const at::Tensor& values) const;
  at::Tensor batch_counts() const; // [layers]
  at::Tensor factors(const at::Tensor& num_calls) const; // [layers]
  at::Tensor per_channel(const at::Tensor& per_layer) const; // [channels]

  std::vector<detail::NormLayer> layers_;
  std::vector<int64_t> num_channels_;
  at::Tensor layer_of_channel_; // [channels]
  at::Tensor start_means_; // [channels]
  at::Tensor start_variances_; // [channels]
  at::Tensor start_counts_; // [layers]
};

} // namespace tandem
