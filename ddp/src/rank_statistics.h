#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>
#include <tandem/core/statistics_group.h>

namespace tandem::detail {

/// Where the ranks' `SyncBatchNorm` layers meet, over a group of its own:
/// forward and backward of these layers come in an order that has nothing to do
/// with that of the buckets. See Note [Statistics over ranks].
class RankStatistics : public std::enable_shared_from_this<RankStatistics> {
 public:
  /// **Collective**. **Throws** as `comm::sibling_group`.
  RankStatistics(comm::ProcessGroup& group, const torch::nn::Module& module);

  /// This rank's way to the statistics of one forward. `weight` is how much its
  /// loss counts; absent: as much as any other's.
  std::shared_ptr<StatisticsGroup> seat(std::optional<double> weight);

  Counters counters() const;

  /// All ranks' rows, [ranks, size of `own`], for a layer.
  /// **Throws** `Error` naming ranks and layers if they are at different ones;
  /// as `ProcessGroup::wait`.
  at::Tensor gather(const at::Tensor& own, const torch::nn::Module& layer);
  /// Sum over the ranks; `what` names it in errors.
  at::Tensor sum(const at::Tensor& own, const std::string& what);

  std::string name_of(const torch::nn::Module& layer) const;

 private:
  void all_reduce(const at::Tensor& tensor, const std::string& what);
  int64_t index_of(const torch::nn::Module& layer) const;
  std::string name_at(int64_t index) const;
  void check_same_layer(const at::Tensor& indices, int64_t own) const;

  std::shared_ptr<comm::ProcessGroup> group_;
  /// In the order of registration.
  std::vector<std::pair<const torch::nn::Module*, std::string>> layers_;
  mutable std::mutex mutex_;
  Counters counters_;
};

/// How many layers of `module` would meet.
int64_t count_sync_batch_norms(const torch::nn::Module& module);

} // namespace tandem::detail
