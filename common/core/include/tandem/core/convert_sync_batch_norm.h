#pragma once

#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

namespace tandem {

/// Replaces every `torch::nn::BatchNorm1d`, `2d` and `3d` below `module` by a
/// `SyncBatchNorm` with its options, its mode, its very parameters (optimizers
/// go on as they were) and buffers in the same memory.
///
/// Layers in `Sequential`, `ModuleList` and `ModuleDict` are replaced, and those
/// that only registration holds. A member variable (`BatchNorm2d norm`) would
/// go on calling the old layer, which C++ cannot change: such layers are
/// refused. Declare them as `SyncBatchNorm norm` instead.
///
/// Returns `module`, or what took its place if it is such a layer itself.
/// **Throws** `ConfigError` naming the layers that something else holds too;
/// then nothing has been replaced.
///
/// Example: `tandem::convert_sync_batch_norm(net);`
std::shared_ptr<torch::nn::Module> convert_sync_batch_norm(
    const std::shared_ptr<torch::nn::Module>& module);

template <typename M>
std::shared_ptr<torch::nn::Module> convert_sync_batch_norm(
    const torch::nn::ModuleHolder<M>& module) {
  return convert_sync_batch_norm(
      std::static_pointer_cast<torch::nn::Module>(module.ptr()));
}

} // namespace tandem
