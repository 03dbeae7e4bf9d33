#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <tandem/train/batch_source.h>

namespace tandem::train {

/// The batch on `device`; itself if it is there.
inline Batch to_device(const Batch& batch, at::Device device) {
  return {
      batch.data.to(device, /*non_blocking=*/true),
      batch.target.to(device, /*non_blocking=*/true)};
}

} // namespace tandem::train
