#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <c10/core/Device.h>

#include <tandem/core/forward_call.h>

namespace tandem::detail {

/// Measures what the last forward left on each device. Costs a look at the
/// allocator's statistics per device and call, and nothing on the CPU.
class ForwardMemory {
 public:
  ForwardMemory(std::vector<at::Device> devices, at::Device output_device);

  /// Before the forward makes anything.
  void begin();
  /// What is allocated between these two is no part of the forward.
  void pause();
  void resume();
  /// When the forward is done and has let go of all but its output.
  void end(const ForwardCall& call, bool has_gathered);

  /// Per replica, as far as known: see `ReplicaMemory::activations_bytes`.
  std::vector<std::optional<int64_t>> activations_bytes() const;
  /// Of gathered outputs; nothing before a forward.
  std::optional<int64_t> outputs_bytes() const {
    return outputs_bytes_;
  }

 private:
  void add_current(int64_t factor);

  std::vector<at::Device> devices_;
  at::Device output_device_;
  /// Of replicas whose device can be measured and is theirs alone.
  std::vector<bool> is_measured_;
  /// Minus what was allocated when the forward began, or resumed.
  std::vector<int64_t> left_bytes_;
  std::optional<int64_t> outputs_bytes_;
};

} // namespace tandem::detail
