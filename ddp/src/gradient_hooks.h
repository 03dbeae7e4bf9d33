#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include <tandem/core/detail/torch_compat.h>
#include <tandem/core/named_tensors.h>

namespace tandem::detail {

/// Calls a function after a parameter's gradient was accumulated, as long as
/// this lives.
///
/// **Owns** the parameters' accumulator nodes, which otherwise live only as long
/// as a graph.
/// **Threads**: the function is called from the threads that run backward, for
/// different parameters possibly at once.
class GradientHooks {
 public:
  /// Gets the parameter's index and whether backward brought it a gradient (a
  /// function may give none).
  using OnGradient = std::function<void(size_t index, bool is_defined)>;

  /// What `on_gradient` throws comes out of `backward()`.
  GradientHooks(
      const std::vector<NamedTensor>& parameters,
      OnGradient on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Attaches the hook again if the accumulator of `parameter` was replaced,
  /// as loading a checkpoint does. Does nothing while it is frozen.
  void reattach(size_t index, const at::Tensor& parameter);

  /// Whether another object's hook is on `parameter`.
  static bool is_hooked(const at::Tensor& parameter);

  /// The parameters' indices by accumulator.
  const std::unordered_map<const torch::autograd::Node*, size_t>& accumulators()
      const {
    return indices_;
  }

 private:
  struct Attached {
    NodePtr accumulator;
    uintptr_t key = 0;
  };

  Attached attach(size_t index, const at::Tensor& parameter);
  void detach(const Attached& attached);

  OnGradient on_gradient_;
  std::vector<Attached> attached_;
  std::unordered_map<const torch::autograd::Node*, size_t> indices_;
};

} // namespace tandem::detail
