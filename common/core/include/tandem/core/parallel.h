#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <tandem/core/forward_call.h>
#include <tandem/core/loss_rows.h>
#include <tandem/core/parallel_module.h>

namespace tandem {

namespace detail {

/// Calls `forward`, whichever overload, template or default arguments fit.
struct CallForward {
  template <typename M, typename... Args>
  auto operator()(M& module, Args&&... args) const
      -> decltype(module.forward(std::forward<Args>(args)...)) {
    return module.forward(std::forward<Args>(args)...);
  }
};

/// Calls `forward` on the inputs and the criterion on its output, and returns
/// the sum of the losses, shaped so that gathering concatenates the sums.
template <typename Criterion>
struct CallLoss {
  const Criterion& criterion;
  int64_t batch_dim;

  template <typename M, typename Target, typename... Inputs>
  at::Tensor operator()(M& module, Target&& target, Inputs&&... inputs) const {
    return sum_of_losses(
        criterion(
            module.forward(std::forward<Inputs>(inputs)...),
            std::forward<Target>(target)),
        batch_dim);
  }
};

} // namespace detail

/// The typed half of a wrapper: a `forward` that takes and returns exactly what
/// `M::forward` does (references are returned as values). It packs the call and
/// hands it to `run`, which engines implement without knowing `M`.
template <typename M>
class Parallel : public ParallelModule {
  static_assert(
      std::is_base_of_v<torch::nn::Module, M>,
      "tandem: wrap a module's Impl class (NetImpl), which derives from "
      "torch::nn::Module");

 public:
  using WrappedType = M;

  /// The wrapped module, with its type.
  std::shared_ptr<M> module() const {
    return std::static_pointer_cast<M>(ParallelModule::module());
  }

  template <typename... Args>
  auto forward(Args&&... args)
      -> detail::CallResult<detail::CallForward, M, Args...> {
    const detail::CallForward function;
    detail::TypedForwardCall<M, detail::CallForward, Args...> call(
        function,
        std::forward<Args>(args)...);
    run(call);
    return call.take();
  }

  /// Mean loss over all rows of all replicas and ranks, exact for uneven
  /// batches; its backward gives the gradient of that mean. The criterion runs
  /// where the replica runs, so no outputs are gathered.
  ///
  /// `criterion(output, target)` returns the losses per row, or their sum (not
  /// their mean). The rows are those of the first tensor of `target` in the
  /// wrapper's batch dimension.
  /// **Threads**: `criterion` is called from every replica's thread at once.
  /// **Collective** under `DistributedDataParallel`.
  /// **Throws** `ShapeError` if `target` holds no tensor.
  template <typename Criterion, typename Target, typename... Inputs>
  at::Tensor mean_loss(
      const Criterion& criterion,
      Target&& target,
      Inputs&&... inputs) {
    const int64_t rows = detail::count_rows(tensors_in(target), batch_dim());
    const detail::CallLoss<Criterion> function{criterion, batch_dim()};
    detail::TypedForwardCall<M, detail::CallLoss<Criterion>, Target, Inputs...>
    call(
        function,
        std::forward<Target>(target),
        std::forward<Inputs>(inputs)...);
    const EqualWeights guard(*this);
    run(call);
    return mean_over_ranks(call.take().sum(), rows);
  }

 protected:
  Parallel(std::string name, std::shared_ptr<M> module)
      : ParallelModule(std::move(name), std::move(module)) {}

  /// Runs one call: moves or scatters inputs, calls the module or its
  /// replicas, leaves the output in `call`.
  virtual void run(ForwardCall& call) = 0;
};

namespace detail {

/// Compiles for no `N`: the message for a module that is passed by value.
template <typename N>
constexpr void refuse_module_by_value() {
  static_assert(
      always_false<N>,
      "tandem: pass the module as its holder (Net) or as "
      "std::shared_ptr<NetImpl>, not by value; the wrapper shares it with you");
}

} // namespace detail
} // namespace tandem
