#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <torch/csrc/autograd/edge.h>

#include "device_sum.h"
#include "tensor_table.h"

namespace tandem::detail {

/// Leads the gradients of the replicas' tensors to the base's. See Note
/// [Gradient bridge] in the .cpp.
class GradientBridge {
 public:
  /// `table` outlives this; `devices` are those of replica 0, 1, ...
  GradientBridge(
      const TensorTable& table,
      std::vector<at::Device> devices,
      int64_t bucket_cap_bytes,
      std::shared_ptr<const DeviceSum> sum);

  /// Makes the nodes anew if the base's accumulators, `requires_grad` or hooks,
  /// or the current streams, are others than last time. To be called before
  /// each forward, with the streams that it will use current.
  void update();

  size_t num_buckets() const {
    return num_buckets_;
  }

 private:
  /// What the nodes depend on, of one base tensor.
  struct Target {
    /// Where its gradient goes; invalid if it needs none.
    torch::autograd::Edge edge;
    bool has_hooks = false;
  };

  static Target target_of(const at::Tensor& tensor);
  static bool is_target_of(const Target& target, const at::Tensor& tensor);
  bool is_current(const std::vector<c10::Stream>& streams) const;
  std::vector<c10::Stream> current_streams() const;
  std::vector<std::vector<size_t>> plan() const;
  void build_bucket(const std::vector<size_t>& bucket);
  void detach_frozen();

  const TensorTable& table_;
  std::vector<at::Device> devices_;
  int64_t bucket_cap_bytes_;
  std::shared_ptr<const DeviceSum> sum_;
  /// Of each replica from 1 on and each base tensor: what stands for it there.
  std::vector<std::vector<std::vector<at::Tensor>>> stand_ins_;
  std::vector<Target> targets_;
  std::vector<c10::Stream> streams_;
  size_t num_buckets_ = 0;
};

} // namespace tandem::detail
