#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/nn/module.h>

#include <tandem/core/norm_statistics.h>

#include "transfer_counts.h"

namespace tandem::detail {

/// Makes the running statistics after a forward those of all chunks, in the
/// wrapped module and in every replica: what `BufferPolicy::kMerge` asks for.
class StatisticsMerge {
 public:
  /// `replicas` have equal buffers whenever a forward begins.
  explicit StatisticsMerge(
      const std::vector<std::shared_ptr<torch::nn::Module>>& replicas);

  void begin();
  /// `chunk_rows`: of the chunk of replica 0, 1, ..., as many as ran.
  void finish(const std::vector<int64_t>& chunk_rows, TransferCounts& counts);

 private:
  std::vector<NormStatistics> replicas_;
  bool is_needed_ = false;
};

} // namespace tandem::detail
