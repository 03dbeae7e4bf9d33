#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// Gives all ranks each rank's values of its own share of the parameters, in
/// one transfer per rank and device.
class ShardBroadcast {
 public:
  /// `shards`: the parameters of each rank.
  explicit ShardBroadcast(const std::vector<std::vector<at::Tensor>>& shards);

  /// Sends what this rank's share is now.
  /// **Collective**.
  void start(comm::ProcessGroup& group);
  /// Waits for the others' and takes it over. Counts as a change in place:
  /// graphs that were made before no longer fit, as after a plain optimizer's
  /// step.
  void finish(comm::ProcessGroup& group);

 private:
  /// Of one rank, dtype and device.
  struct Part {
    int64_t rank;
    std::vector<at::Tensor> parameters;
    /// While on their way.
    at::Tensor flat;
    c10::intrusive_ptr<c10d::Work> work;
  };

  std::vector<Part> parts_;
};

} // namespace tandem::detail
