#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <torch/nn/pimpl.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/join.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/parallel.h>
#include <tandem/core/parallel_holder.h>
#include <tandem/ddp/detail/engine.h>
#include <tandem/ddp/logging_data.h>
#include <tandem/ddp/options.h>

namespace tandem {

/// Data parallelism over processes, one per device: each rank runs forward and
/// backward on its part of the batch, and while backward runs gradients are
/// averaged over the ranks, bucket by bucket. After `backward()` every rank has
/// the gradients of the mean of the ranks' losses, so equal optimizers take
/// equal steps.
///
/// At construction all ranks compare module and options, then take rank 0's
/// parameters and buffers. A world of one sends nothing and installs nothing.
///
/// 1. Whether a backward is reduced is decided by its forward: under `no_sync`
///    gradients stay local and accumulate. A module called directly
///    (`model->module()->forward(...)`) stays local too.
/// 2. Every parameter that requires grad must get a gradient in each
///    synchronised step; the next forward names those that got none. Others may
///    be frozen, `requires_grad_(false)`, before forward and trained again
///    later, on all ranks alike, or be left out by the options
///    `find_unused_parameters` and `static_graph`.
/// 3. Until `backward()` returns, gradients may be partly reduced; after it
///    threw, they are undefined and `zero_grad` starts afresh.
/// 4. A rank's loss counts as much as any other's, unless ranks are weighed:
///    `set_sample_weight`.
/// 5. `to()` after wrapping is an error unless it changes nothing. `load()`
///    reads into this rank's module: let all ranks load the same, or load on
///    rank 0 before wrapping.
///
/// **Threads**: one at a time; backward may run on another than forward.
/// **Collective**: construction, each forward with grad mode and
/// synchronisation on where buffers are sent or ranks weighed, its backward,
/// `mean_loss`.
/// The destructor waits for nobody.
/// **Throws** at construction, on every rank: `ConfigError` naming the
/// parameter, buffer or option that is unfit or differs; `PeerError` where
/// another rank's own check failed. From `forward` and `backward`: `PeerError`
/// and `TimeoutError` naming the bucket.
template <typename M>
class DistributedDataParallelImpl final : public Parallel<M>,
                                          public comm::Joinable {
 public:
  explicit DistributedDataParallelImpl(
      std::shared_ptr<M> module,
      const DistributedDataParallelOptions& options = {})
      : Parallel<M>("DistributedDataParallel", std::move(module)),
        engine_(this->module(), options) {}

  explicit DistributedDataParallelImpl(
      const torch::nn::ModuleHolder<M>& module,
      const DistributedDataParallelOptions& options = {})
      : DistributedDataParallelImpl(module.ptr(), options) {}

  template <std::derived_from<torch::nn::Module> N>
  explicit DistributedDataParallelImpl(
      const N&,
      const DistributedDataParallelOptions& = {})
      : DistributedDataParallelImpl(std::shared_ptr<M>()) {
    detail::refuse_module_by_value<N>();
  }

  std::string strategy() const override {
    return "ddp";
  }
  int64_t world_size() const override {
    return engine_.group().size();
  }
  int64_t rank() const override {
    return engine_.group().rank();
  }
  at::Device device() const override {
    return engine_.device();
  }
  std::string describe() const override {
    return engine_.describe();
  }
  Counters counters() const override {
    return engine_.counters();
  }

  /// Lets `hook` reduce the gradients bucket by bucket, in place of the mean
  /// over the ranks; sparse gradients are reduced as before.
  /// **Collective**. **Throws** `ConfigError` after the first backward, if there
  /// is a hook already, or if the ranks' hooks differ.
  void register_comm_hook(std::shared_ptr<comm::CommHook> hook) {
    engine_.register_comm_hook(std::move(hook));
  }
  /// The same for a function that starts one bucket's reduction and returns the
  /// future of its result.
  void register_comm_hook(
      comm::FunctionHook::Function function,
      std::string name = "function") {
    register_comm_hook(std::make_shared<comm::FunctionHook>(
        std::move(function),
        std::move(name)));
  }

  /// For `comm::Join`, in which ranks may have different numbers of inputs.
  /// Gradients are averaged over all ranks or, without
  /// `divide_by_initial_world_size`, over those that have inputs left. At the
  /// end all ranks have the parameters and buffers of one that joined last.
  /// **Throws** `ConfigError` for a module with `SyncBatchNorm`, whose layers a
  /// rank without inputs cannot serve.
  std::unique_ptr<comm::JoinHook> join_hook(
      const comm::JoinOptions& options) override {
    return engine_.join_hook(options, [this] { return this->sample_weight(); });
  }
  std::shared_ptr<comm::ProcessGroup> join_process_group() const override {
    return engine_.shared_group();
  }
  std::unique_ptr<UnevenInputs> uneven_inputs() override {
    return detail::join_uneven_inputs(*this);
  }

  /// Calls `function` with each parameter as soon as its gradient is ready for
  /// an optimizer; null ends that. For `OptimizerInBackward`.
  /// **Throws** `ConfigError` if there is one already.
  void set_on_gradient(std::function<void(const NamedTensor&)> function) {
    engine_.set_on_gradient(std::move(function));
  }

  /// Times, buckets and unused parameters of the last reduction; empty in a
  /// world of one.
  DDPLoggingData logging_data() const {
    return engine_.logging_data();
  }

  void all_reduce_sum_(at::Tensor& tensor) override {
    engine_.all_reduce_sum_(tensor);
  }
  void broadcast_(at::Tensor& tensor, int64_t root = 0) override {
    engine_.broadcast_(tensor, root);
  }
  void barrier() override {
    engine_.barrier();
  }

  // **Throws** `ConfigError` unless nothing would change.
  void to(at::Device device, at::ScalarType dtype, bool = false) override {
    engine_.refuse_conversion(device, dtype);
  }
  void to(at::ScalarType dtype, bool = false) override {
    engine_.refuse_conversion(std::nullopt, dtype);
  }
  void to(at::Device device, bool = false) override {
    engine_.refuse_conversion(device, std::nullopt);
  }

 private:
  void run(ForwardCall& call) override {
    engine_.run(
        call,
        *this->module(),
        {this->gradient_sync(), this->sample_weight()},
        *this);
  }

  void agree_on_sample_weights(bool are_used) override {
    engine_.agree_on_sample_weights(are_used);
  }

  at::Tensor mean_over_ranks(const at::Tensor& loss_sum, int64_t rows)
      override {
    return engine_.mean_over_ranks(loss_sum, rows);
  }

  detail::DistributedEngine engine_;
};

/// Holder of `DistributedDataParallelImpl<M>`; `M` is deduced from `Net` or
/// `std::shared_ptr<NetImpl>`.
template <typename M>
class DistributedDataParallel
    : public ParallelHolder<DistributedDataParallelImpl<M>> {
 public:
  using ParallelHolder<DistributedDataParallelImpl<M>>::ParallelHolder;
  using Impl = DistributedDataParallelImpl<M>;
};

template <typename M, typename... Options>
DistributedDataParallel(const torch::nn::ModuleHolder<M>&, Options&&...)
    -> DistributedDataParallel<M>;
template <typename M, typename... Options>
DistributedDataParallel(std::shared_ptr<M>, Options&&...)
    -> DistributedDataParallel<M>;
template <std::derived_from<torch::nn::Module> N, typename... Options>
DistributedDataParallel(const N&, Options&&...) -> DistributedDataParallel<N>;

} // namespace tandem
