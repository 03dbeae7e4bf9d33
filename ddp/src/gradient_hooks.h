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
      const std::function<void(size_t)>& on_gradient);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  /// False if the accumulator of `parameter` was replaced, as conversion to
  /// another type or device does: then the hook is never called again.
  bool is_attached(size_t index, const at::Tensor& parameter) const;

 private:
  struct Attached {
    NodePtr accumulator;
    uintptr_t key = 0;
  };

  std::vector<Attached> attached_;
};

} // namespace tandem::detail
