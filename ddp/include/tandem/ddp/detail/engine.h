#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/comm/join.h>
#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/forward_call.h>
#include <tandem/core/named_tensors.h>
#include <tandem/core/norm_statistics.h>
#include <tandem/core/parallel_module.h>
#include <tandem/core/sample_weight.h>
#include <tandem/ddp/logging_data.h>
#include <tandem/ddp/options.h>

namespace tandem::detail {

class DivergenceCheck;
class FlatBroadcast;
class GradientHooks;
class GradientWeight;
class RankStatistics;
class Reducer;
class RegistrationCheck;
struct ModuleTensors;

/// How the backward of a forward is to be reduced.
struct Synchronisation {
  /// Whether it is at all.
  bool is_on;
  SampleWeighting weight;
};

/// A `Join` of one.
std::unique_ptr<UnevenInputs> join_uneven_inputs(comm::Joinable& joinable);

/// What `DistributedDataParallel` does, without the module's type.
class DistributedEngine {
 public:
  /// Checks the module, agrees with the other ranks and takes rank 0's values.
  /// **Collective**. **Throws** as `DistributedDataParallelImpl`.
  DistributedEngine(
      const std::shared_ptr<torch::nn::Module>& module,
      const DistributedDataParallelOptions& options);
  ~DistributedEngine();
  DistributedEngine(const DistributedEngine&) = delete;
  DistributedEngine& operator=(const DistributedEngine&) = delete;

  /// `self`: what may be part of a `Join`.
  void run(
      ForwardCall& call,
      torch::nn::Module& module,
      const Synchronisation& synchronisation,
      comm::Joinable& self);

  /// The parts of `comm::Joinable`. `weighting` tells the wrapper's, as it is.
  std::unique_ptr<comm::JoinHook> join_hook(
      const comm::JoinOptions& options,
      std::function<SampleWeighting()> weighting);
  const std::shared_ptr<comm::ProcessGroup>& shared_group() const {
    return group_;
  }

  /// Calls `function` with each parameter whose gradient is ready for the
  /// optimizer: reduced or, in a world of one, accumulated with synchronisation
  /// on. Null ends that.
  /// **Throws** `ConfigError` if there is one already.
  void set_on_gradient(std::function<void(const NamedTensor&)> function);
  void agree_on_sample_weights(bool are_used);

  /// The part of `ParallelModule::mean_over_ranks`.
  at::Tensor mean_over_ranks(const at::Tensor& loss_sum, int64_t rows);

  void all_reduce_sum_(at::Tensor& tensor);
  void broadcast_(at::Tensor& tensor, int64_t root);
  void barrier();

  /// **Throws** `ConfigError` unless the module is there and of that type
  /// already: buckets and gradient hooks are made for what was wrapped.
  void refuse_conversion(
      std::optional<at::Device> device,
      std::optional<at::ScalarType> dtype) const;

  /// The part of `DistributedDataParallelImpl::register_comm_hook`.
  void register_comm_hook(std::shared_ptr<comm::CommHook> hook);
  DDPLoggingData logging_data() const;

  std::string describe() const;
  Counters counters() const;

  const comm::ProcessGroup& group() const {
    return *group_;
  }
  at::Device device() const {
    return device_;
  }

 private:
  void invoke(
      ForwardCall& call,
      torch::nn::Module& module,
      std::optional<double> weight);
  void run_recorded(
      ForwardCall& call,
      torch::nn::Module& module,
      const Synchronisation& synchronisation,
      comm::Joinable& self);

  class ShadowHook;
  /// What the ranks tell each other in each forward of a `Join`.
  struct JoinRound {
    bool is_synchronised;
    /// The last rank that has inputs.
    int64_t root;
  };
  JoinRound meet(bool has_inputs, bool is_synchronised);
  void shadow(
      const SampleWeighting& weighting,
      const comm::JoinOptions& options);
  void adopt_final_model(bool is_last_joiner);
  std::optional<double> weight_of(
      const Synchronisation& synchronisation,
      std::optional<int64_t> rows);
  std::shared_ptr<GradientWeight> weigh(std::optional<double> weight);
  void count(const at::Tensor& tensor);
  void merge_statistics(int64_t rows);

  DistributedDataParallelOptions options_;
  std::shared_ptr<comm::ProcessGroup> group_;
  at::Device device_;
  /// The module lies on several; its forward moves what it needs.
  bool spans_devices_ = false;
  std::unique_ptr<ModuleTensors> tensors_;
  /// These are null in a world of one, where nothing is installed. Buffers that
  /// follow rank 0, none under `BufferPolicy::kNone`:
  std::unique_ptr<FlatBroadcast> buffers_;
  /// Statistics to merge, if there are any and `BufferPolicy::kMerge` is on:
  std::unique_ptr<NormStatistics> statistics_;
  std::shared_ptr<Reducer> reducer_;
  /// Null where ranks may differ.
  std::unique_ptr<DivergenceCheck> divergence_;
  std::unique_ptr<RegistrationCheck> registrations_;
  /// In a world of one, what serves `set_on_gradient`.
  std::unique_ptr<GradientHooks> own_hooks_;
  std::function<void(const NamedTensor&)> on_gradient_;
  bool is_synchronised_ = true;
  /// The last forward was part of a `Join`.
  bool is_in_join_ = false;
  /// Null without `SyncBatchNorm` layers.
  std::shared_ptr<RankStatistics> rank_statistics_;
  /// Of forwards whose gradients have not been reduced yet.
  int64_t accumulated_rows_ = 0;
  Counters counters_;
};

} // namespace tandem::detail
