#pragma once

#include <utility>

#include <torch/nn/pimpl.h>

namespace tandem {

/// The holder that wrappers' holders derive from: LibTorch's `ModuleHolder`,
/// whose call operator does not see a `forward` that is a template, with one
/// that does.
template <typename Impl>
class ParallelHolder : public torch::nn::ModuleHolder<Impl> {
 public:
  using torch::nn::ModuleHolder<Impl>::ModuleHolder;

  template <typename... Args>
  auto operator()(Args&&... args)
      -> decltype(std::declval<Impl&>().forward(std::forward<Args>(args)...)) {
    return this->get()->forward(std::forward<Args>(args)...);
  }
};

} // namespace tandem
