#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tandem/comm/process_group.h>

namespace tandem::detail {

/// Which parameters have something to reduce: marks of this rank, and whether
/// any rank has made one.
class GradientUse {
 public:
  GradientUse(std::shared_ptr<comm::ProcessGroup> group, size_t num_parameters);

  void mark(size_t index) {
    here_[index] = 1;
  }
  bool is_marked_here(size_t index) const {
    return here_[index] != 0;
  }

  /// Starts to ask the other ranks, through CPU memory. **Collective**.
  void start();
  /// Waits for their answers. **Throws** as `ProcessGroup::wait`.
  void finish();
  /// Whether any rank had marked it at `start`.
  bool is_marked(size_t index) const {
    return anywhere_[index] != 0;
  }
  /// This rank's marks go; answers stay until the next `start`.
  void restart();

 private:
  std::shared_ptr<comm::ProcessGroup> group_;
  std::vector<uint8_t> here_;
  std::vector<uint8_t> anywhere_;
  at::Tensor sent_; // [parameters]
  c10::intrusive_ptr<c10d::Work> work_;
};

} // namespace tandem::detail
