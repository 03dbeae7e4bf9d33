#pragma once

// The differences between the LibTorch versions that Tandem supports (2.11 and
// later); the only place that knows them.

#include <memory>
#include <type_traits>
#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace tandem::detail {

/// Owning pointer to an autograd node: `std::shared_ptr` up to 2.12,
/// `c10::intrusive_ptr` from 2.13 on.
using NodePtr = std::decay_t<decltype(torch::autograd::impl::grad_accumulator(
    std::declval<const at::Tensor&>()))>;

template <typename Pointer>
inline constexpr bool is_std_shared_ptr = false;
template <typename T>
inline constexpr bool is_std_shared_ptr<std::shared_ptr<T>> = true;

/// Owning pointer to a node of type `T`.
template <typename T, typename Node = NodePtr>
auto make_node_impl(auto&&... args) {
  if constexpr (is_std_shared_ptr<Node>) {
    return std::make_shared<T>(std::forward<decltype(args)>(args)...);
  } else {
    return c10::make_intrusive<T>(std::forward<decltype(args)>(args)...);
  }
}

/// Makes an autograd node of type `T`.
template <typename T, typename... Args>
auto make_node(Args&&... args) {
  return make_node_impl<T>(std::forward<Args>(args)...);
}

} // namespace tandem::detail
