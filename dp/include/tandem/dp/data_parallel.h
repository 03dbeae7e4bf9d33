#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/pimpl.h>

#include <tandem/core/parallel.h>
#include <tandem/core/parallel_holder.h>
#include <tandem/dp/data_parallel_options.h>
#include <tandem/dp/memory_report.h>

namespace torch::optim {
class Optimizer;
} // namespace torch::optim

namespace tandem {

namespace detail {

/// What `DataParallel` does, without the module's type.
class DataParallelEngine {
 public:
  DataParallelEngine(
      const std::shared_ptr<torch::nn::Module>& module,
      const DataParallelOptions& options);
  ~DataParallelEngine();
  DataParallelEngine(const DataParallelEngine&) = delete;
  DataParallelEngine(DataParallelEngine&&) = delete;
  DataParallelEngine& operator=(const DataParallelEngine&) = delete;
  DataParallelEngine& operator=(DataParallelEngine&&) = delete;

  /// `no_sync_stretch`: as `ParallelModule::no_sync_stretch()`.
  void run(ForwardCall& call, std::optional<int64_t> no_sync_stretch);
  void refresh();
  /// **Throws** `ConfigError` unless `device` is where the module is.
  void check_stays_on_device(at::Device device) const;

  std::string describe() const;
  Counters counters() const;
  MemoryReport memory_report(const torch::optim::Optimizer* optimizer) const;
  const std::vector<at::Device>& devices() const;
  int64_t dim() const;
  const std::vector<std::shared_ptr<torch::nn::Module>>& replicas() const;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

} // namespace detail

/// Trains a module on several devices of one process: every forward cuts the
/// batch into a chunk of rows per device, runs a replica on each at the same
/// time and concatenates the outputs on the output device. Gradients of all
/// replicas are summed into the wrapped module's by the ordinary `backward()`.
///
/// 1. The wrapped module is replica 0, on the first device: its buffers (such
///    as BatchNorm's statistics) are those that its own rows give, unless the
///    option `buffer_policy` merges them. `SyncBatchNorm` layers use the whole
///    batch's.
/// 2. The other replicas are made at construction, by `clone(device)` or the
///    option `replica_factory`, and follow the wrapped module's values, dtypes,
///    training flags and `requires_grad`; when values are copied is the
///    option `refresh_policy`'s. After a parameter, buffer or child was added,
///    replaced or removed wrap the module again; a call says so.
/// 3. Tensors are cut in the batch dimension into chunks of ceil(rows /
///    devices) rows, so a small batch runs fewer replicas. Replicas receive
///    copies of their rows; 0-dim tensors and plain values go to all of them.
///    Arguments without any tensor to cut run replica 0 alone.
/// 4. 0-dim outputs become a vector with one entry per chunk, with a warning at
///    the first of them; plain values in the result are replica 0's.
/// 5. With one device the module is called itself: no copy, no replica.
/// 6. `zero_grad()` in the wrapped module's own `forward` has no effect, as in
///    Python's DataParallel (a warning says so, once): gradients that were
///    there before are kept. Only `zero_grad(/*set_to_none=*/false)` does zero
///    them, since replica 0 is the wrapped module.
///
/// Devices of very unequal memory or number of multiprocessors are warned of at
/// construction: all wait for the least of them.
///
/// CPU replicas run forward in parallel; the autograd engine runs their
/// backward on one thread. Random numbers of CPU replicas come from the
/// process's one generator, in the order the threads ask for them.
///
/// **Threads**: one call at a time. The caller's thread runs replica 0, one
/// thread per further device runs its replica with the caller's grad mode,
/// inference mode, autocast and current streams. `forward` of different
/// replicas runs at the same time, so what they share must be thread-safe.
/// **Owns** the module (shared), replicas and threads; it may be destroyed
/// before backward.
/// **Throws** `ConfigError` at construction if the options or the module do not
/// fit, before any thread starts. In a call: `ShapeError` for arguments or
/// outputs that cannot be cut or joined; what a replica throws, with replica
/// and device as context if it is a `c10::Error`, else as `ReplicaError`; all
/// replicas have finished by then, and the wrapper remains usable.
template <typename M>
class DataParallelImpl final : public Parallel<M> {
 public:
  explicit DataParallelImpl(
      std::shared_ptr<M> module,
      const DataParallelOptions& options = {})
      : Parallel<M>("DataParallel", std::move(module)),
        engine_(this->module(), options) {}

  explicit DataParallelImpl(
      const torch::nn::ModuleHolder<M>& module,
      const DataParallelOptions& options = {})
      : DataParallelImpl(module.ptr(), options) {}

  template <std::derived_from<torch::nn::Module> N>
  explicit DataParallelImpl(const N&, const DataParallelOptions& = {})
      : DataParallelImpl(std::shared_ptr<M>()) {
    detail::refuse_module_by_value<N>();
  }

  std::string strategy() const override {
    return "dp";
  }
  int64_t num_replicas() const override {
    return static_cast<int64_t>(engine_.devices().size());
  }
  at::Device device() const override {
    return engine_.devices().front();
  }
  int64_t batch_dim() const override {
    return engine_.dim();
  }
  std::string describe() const override {
    return engine_.describe();
  }
  /// Bytes and copies count what goes to and comes from replicas 1, 2, ...
  Counters counters() const override {
    return engine_.counters();
  }

  /// What each replica holds now, and what the last forward left.
  /// **Threads**: not during a call.
  MemoryReport memory_report() const {
    return engine_.memory_report(nullptr);
  }
  /// With the state of `optimizer`, which steps the wrapped parameters.
  MemoryReport memory_report(const torch::optim::Optimizer& optimizer) const {
    return engine_.memory_report(&optimizer);
  }

  /// Copies parameters and buffers to the replicas now, whatever the policy;
  /// needed after each change of parameters under `RefreshPolicy::kManual`.
  void refresh() {
    engine_.refresh();
  }

  /// The replica on the `index`-th device; the first is `module()` itself.
  std::shared_ptr<M> replica(size_t index) const {
    return std::static_pointer_cast<M>(engine_.replicas().at(index));
  }

  using Parallel<M>::to;
  /// Replicas follow a change of dtype at the next forward.
  /// **Throws** `ConfigError` if `device` is not the first device.
  void to(at::Device device, at::ScalarType dtype, bool non_blocking = false)
      override {
    engine_.check_stays_on_device(device);
    Parallel<M>::to(device, dtype, non_blocking);
  }
  void to(at::Device device, bool non_blocking = false) override {
    engine_.check_stays_on_device(device);
    Parallel<M>::to(device, non_blocking);
  }

 private:
  void run(ForwardCall& call) override {
    engine_.run(call, this->no_sync_stretch());
  }

  detail::DataParallelEngine engine_;
};

/// Holder of `DataParallelImpl<M>`; `M` is deduced from `Net` or
/// `std::shared_ptr<NetImpl>`.
///
/// Example:
/// ```cpp
/// Net net;
/// net->to(torch::Device(torch::kCUDA, 0));
/// tandem::DataParallel model(
///     net, tandem::DataParallelOptions().device_ids({0, 1}));
/// ```
template <typename M>
class DataParallel : public ParallelHolder<DataParallelImpl<M>> {
 public:
  using ParallelHolder<DataParallelImpl<M>>::ParallelHolder;
  using Impl = DataParallelImpl<M>;
};

template <typename M, typename... Options>
DataParallel(const torch::nn::ModuleHolder<M>&, Options&&...)
    -> DataParallel<M>;
template <typename M, typename... Options>
DataParallel(std::shared_ptr<M>, Options&&...) -> DataParallel<M>;
template <std::derived_from<torch::nn::Module> N, typename... Options>
DataParallel(const N&, Options&&...) -> DataParallel<N>;

} // namespace tandem
