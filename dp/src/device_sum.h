#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include "transfer_counts.h"

namespace tandem::detail {

/// How gradients of several replicas become one on the first device. A bucket
/// passes in two stages, so that what a replica can do alone overlaps with the
/// backward of the others.
/// **Threads**: the autograd engine's; may be called from several at once.
class DeviceSum {
 public:
  virtual ~DeviceSum() = default;

  /// One replica's gradients of a bucket, all defined, on its device: returns
  /// what `add` takes, on the device that the Sum node lives on.
  virtual std::vector<at::Tensor> bring(
      std::vector<at::Tensor> gradients) const = 0;
  /// The sum of one parameter's gradients, at least one, in replica order.
  virtual at::Tensor add(const std::vector<at::Tensor>& gradients) const = 0;
};

/// Copies to `destination`, one transfer per replica and dtype, and additions
/// in the order of the replicas: the same bits at every run.
std::shared_ptr<const DeviceSum> make_ordered_device_sum(
    at::Device destination,
    std::shared_ptr<TransferCounts> counts);

/// Copies dense tensors of one dtype and device to `destination` in one
/// transfer. Differentiable if grad mode is on; if it is off the results are no
/// views that autograd knows, so that `zero_grad` may detach them.
std::vector<at::Tensor> move_together(
    const std::vector<at::Tensor>& tensors,
    at::Device destination);

} // namespace tandem::detail
