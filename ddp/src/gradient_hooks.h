#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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
  /// `on_gradient` gets the parameter's index; what it throws comes out of
  /// `backward()`.
  GradientHooks(
      const std::vector<NamedTensor>& parameters,
      std::function<void(size_t)> on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// Attaches the hook again if the accumulator of `parameter` was replaced,
  /// as loading a checkpoint does. Does nothing while it is frozen.
  void reattach(size_t index, const at::Tensor& parameter);

 private:
  struct Attached {
    NodePtr accumulator;
    uintptr_t key = 0;
  };

  Attached attach(size_t index, const at::Tensor& parameter) const;
  static void detach(const Attached& attached);

  std::function<void(size_t)> on_gradient_;
  std::vector<Attached> attached_;
};

} // namespace tandem::detail
