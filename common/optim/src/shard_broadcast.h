#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// Gives all ranks each rank's values of its own share of the parameters, in
/// one transfer per rank and device.
class ShardBroadcast {
 public:
  /// `shards`: the parameters of each rank.
  explicit ShardBroadcast(std::vector<std::vector<at::Tensor>> shards);

  /// **Collective**. Counts as a change in place: graphs that were made before
  /// no longer fit, as after a plain optimizer's step.
  void run(comm::ProcessGroup& group) const;

 private:
  /// Of one rank, dtype and device.
  struct Part {
    int64_t rank;
    std::vector<at::Tensor> parameters;
  };

  std::vector<Part> parts_;
};

} // namespace tandem::detail
