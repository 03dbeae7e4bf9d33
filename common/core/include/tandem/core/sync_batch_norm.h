#pragma once

#include <cstddef>
#include <ostream>

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/options/batchnorm.h>
#include <torch/nn/pimpl.h>

#include <tandem/core/batch_moments.h>

namespace tandem {

/// BatchNorm over the rows of all replicas: inside a parallel wrapper's forward
/// it normalises by the statistics of the whole batch, so that outputs,
/// gradients (second derivatives too) and running statistics are those of one
/// device. Elsewhere, and with running statistics in `eval`, it is LibTorch's
/// BatchNorm. Options, parameters and buffers are those of
/// `torch::nn::BatchNorm`, so checkpoints interchange.
///
/// The replicas or ranks meet in forward, in each call of each such layer; they
/// may have different numbers of rows, one or none too. Backward waits for
/// nobody under `DataParallel`; under `DistributedDataParallel` the ranks meet
/// in it again, in each layer that the loss depends on. In `eval` they do not.
///
/// **Shapes**: input and output [N, C, ...], any number of further dimensions.
/// **Collective** inside a wrapper: every replica calls the same layers in the
/// same order, whatever its rows.
/// **Throws** `ShapeError` for another number of channels; what
/// `StatisticsGroup::combine` throws.
///
/// Example: `torch::nn::Sequential net(torch::nn::Conv2d(1, 8, 3),
/// tandem::SyncBatchNorm(8), torch::nn::ReLU());`
class SyncBatchNormImpl
    : public torch::nn::
          NormImplBase<0, SyncBatchNormImpl, torch::nn::BatchNormOptions> {
 public:
  using NormImplBase::NormImplBase;

  at::Tensor forward(const at::Tensor& input);
  void pretty_print(std::ostream& stream) const override;

  /// Takes the tensors of a layer with the same options: these parameters
  /// become its own, and its buffers lie in the given ones' memory.
  void share_tensors(
      const at::Tensor& weight,
      const at::Tensor& bias,
      const at::Tensor& running_mean,
      const at::Tensor& running_var,
      const at::Tensor& num_batches_tracked);

 protected:
  void _check_input_dim(const at::Tensor& input) override;

 private:
  /// Counts a batch; the weight of its statistics in the running ones.
  double next_average_factor();
  void update_running_statistics(const BatchMoments& batch);
  at::Tensor normalize(const at::Tensor& input, const BatchMoments& batch)
      const;
};

TORCH_MODULE(SyncBatchNorm);

} // namespace tandem
