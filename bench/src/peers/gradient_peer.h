#pragma once

#include <memory>

#include <torch/nn/module.h>

#include "harness/bench_recipe.h"
#include "harness/mode.h"

namespace tandem::bench {

/// Another way to average the gradients of a bare network over the ranks.
class GradientPeer {
 public:
  GradientPeer() = default;
  virtual ~GradientPeer() = default;
  GradientPeer(const GradientPeer&) = delete;
  GradientPeer& operator=(const GradientPeer&) = delete;

  virtual void before_forward() {}
  virtual void after_forward() {}
  virtual void after_backward() {}
};

/// The peer of such a mode over this process's default group; null if it has
/// none.
std::unique_ptr<GradientPeer> make_gradient_peer(
    TimedStrategy strategy,
    const torch::nn::Module& net,
    const BenchRecipe& recipe);

/// One blocking all-reduce for each parameter after backward.
std::unique_ptr<GradientPeer> make_naive_peer(const torch::nn::Module& net);

/// PyTorch's C++ reducer with Python's defaults.
std::unique_ptr<GradientPeer> make_c10d_peer(
    const torch::nn::Module& net,
    const BenchRecipe& recipe,
    bool gradient_as_bucket_view);

} // namespace tandem::bench
