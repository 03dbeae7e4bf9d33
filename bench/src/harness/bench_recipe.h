#pragma once

#include <cstdint>
#include <optional>

#include <tandem/dp/data_parallel_options.h>

#include "workloads/classifier.h"

namespace tandem::bench {

/// What is timed in every mode of a run.
struct BenchRecipe {
  Architecture workload = Architecture::kCnn;
  /// Rows of a step, over all workers.
  int64_t batch = 128;
  /// Of the initial values and the data.
  uint64_t seed = 0;
  /// Absent: the wrappers' defaults.
  std::optional<RefreshPolicy> refresh_policy;
  std::optional<int64_t> bucket_cap_bytes;
  /// Of ddp and its peers.
  std::optional<int64_t> first_bucket_bytes;
};

} // namespace tandem::bench
