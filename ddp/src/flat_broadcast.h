#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>
#include <tandem/core/counters.h>

namespace tandem::detail {

/// Gives all ranks one rank's values of a fixed set of tensors, bit for bit, in
/// one transfer per dtype and device.
class FlatBroadcast {
 public:
  explicit FlatBroadcast(const std::vector<at::Tensor>& tensors);

  /// **Collective**. Records no history and leaves version counters as they
  /// are: graphs that were made before stay valid.
  void run(comm::ProcessGroup& group, Counters& counters, int64_t root = 0)
      const;

 private:
  std::vector<std::vector<at::Tensor>> groups_;
};

} // namespace tandem::detail
