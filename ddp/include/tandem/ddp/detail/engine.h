#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <tandem/comm/comm_hook.h>
#include <tandem/core/counters.h>
#include <tandem/core/forward_call.h>
#include <tandem/core/norm_statistics.h>
#include <tandem/core/sample_weight.h>
#include <tandem/ddp/logging_data.h>
#include <tandem/ddp/options.h>

namespace tandem::detail {

class FlatBroadcast;
class GradientWeight;
class RankStatistics;
class Reducer;
struct ModuleTensors;

/// How the backward of a forward is to be reduced.
struct Synchronisation {
  /// Whether it is at all.
  bool is_on;
  SampleWeighting weight;
};

/// What `DistributedDataParallel` does, without the module's type.
class DistributedEngine {
 public:
  /// Checks the module, agrees with the other ranks and takes rank 0's values.
  /// **Collective**. **Throws** as `DistributedDataParallelImpl`.
  DistributedEngine(
      const torch::nn::Module& module,
      const DistributedDataParallelOptions& options);
  ~DistributedEngine();
  DistributedEngine(const DistributedEngine&) = delete;
  DistributedEngine& operator=(const DistributedEngine&) = delete;

  void run(
      ForwardCall& call,
      torch::nn::Module& module,
      const Synchronisation& synchronisation);
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
      const Synchronisation& synchronisation);
  std::optional<double> weight_of(
      const Synchronisation& synchronisation,
      std::optional<int64_t> rows);
  std::shared_ptr<GradientWeight> weigh(std::optional<double> weight);
  void count(const at::Tensor& tensor);
  void merge_statistics(int64_t rows);

  DistributedDataParallelOptions options_;
  std::shared_ptr<comm::ProcessGroup> group_;
  at::Device device_;
  std::unique_ptr<ModuleTensors> tensors_;
  /// These are null in a world of one, where nothing is installed. Buffers that
  /// follow rank 0, none under `BufferPolicy::kNone`:
  std::unique_ptr<FlatBroadcast> buffers_;
  /// Statistics to merge, if there are any and `BufferPolicy::kMerge` is on:
  std::unique_ptr<NormStatistics> statistics_;
  std::shared_ptr<Reducer> reducer_;
  /// Null without `SyncBatchNorm` layers.
  std::shared_ptr<RankStatistics> rank_statistics_;
  /// Of forwards whose gradients have not been reduced yet.
  int64_t accumulated_rows_ = 0;
  Counters counters_;
};

} // namespace tandem::detail
