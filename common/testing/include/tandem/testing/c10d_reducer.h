#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include <tandem/comm/process_group.h>

namespace c10d {
class Logger;
class Reducer;
} // namespace c10d

namespace tandem::testing {

/// PyTorch's own reducer around a bare module, called as Python's
/// `DistributedDataParallel` calls it: what ours is compared with.
class C10dReducer {
 public:
  struct Options {
    /// Python's defaults.
    int64_t first_bucket_bytes = 1 << 20;
    int64_t bucket_cap_bytes = 25 << 20;
    bool gradient_as_bucket_view = false;
  };

  C10dReducer(
      std::vector<at::Tensor> parameters,
      const comm::ProcessGroup& group,
      const Options& options);

  /// Around each forward whose backward is to be reduced.
  void before_forward();
  void after_forward();

 private:
  std::shared_ptr<c10d::Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
};

} // namespace tandem::testing
